package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxSize bounds a configuration file, in bytes.
const maxSize = 1 << 20

var errTooLong = errors.New("is too large")

func readAll(r io.Reader, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(b)) > limit {
		return nil, fmt.Errorf("%w: at most %d bytes", errTooLong, limit)
	}
	return b, err
}

// parseYAML returns the root of the one document in data, or what is wrong
// with it: path and file are left empty.
func parseYAML(data []byte) (*yaml.Node, *Problem) {
	if !utf8.Valid(data) {
		good := 0
		for good < len(data) {
			r, size := utf8.DecodeRune(data[good:])
			if r == utf8.RuneError && size == 1 {
				break
			}
			good += size
		}
		return nil, problemAt(data, good, "is not UTF-8")
	}
	nodes, read, err := documents(data)
	if err != nil {
		return nil, locate(data, read, err)
	}
	switch {
	case len(nodes) == 0 || isNull(nodes[0].Content[0]):
		return nil, &Problem{Line: 1, Column: 1,
			Message: "is empty: at least `policies` and `default` are needed; `stint serve` without a file runs an example"}
	case len(nodes) > 1:
		return nil, &Problem{Line: nodes[1].Line, Column: nodes[1].Column,
			Message: "a second document starts here: a configuration is one document"}
	}
	return nodes[0].Content[0], nil
}

// documents parses at most two documents, and tells how far it read.
func documents(data []byte) (nodes []*yaml.Node, read int, err error) {
	r := &slowReader{data: data}
	defer func() { read = r.next }()
	// The parser is not ours and has been seen to panic on odd input, which
	// must not take more than this file down.
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("yaml: cannot be parsed")
		}
	}()
	decoder := yaml.NewDecoder(r)
	for len(nodes) < 2 {
		var n yaml.Node
		if err := decoder.Decode(&n); errors.Is(err, io.EOF) {
			return nodes, 0, nil
		} else if err != nil {
			return nil, 0, err
		}
		nodes = append(nodes, &n)
	}
	return nodes, 0, nil
}

// slowReader gives one byte at a time, so that what has been read ends close
// to where the parser stands.
type slowReader struct {
	data []byte
	next int
}

func (r *slowReader) Read(p []byte) (int, error) {
	if r.next == len(r.data) {
		return 0, io.EOF
	}
	n := copy(p[:min(1, len(p))], r.data[r.next:])
	r.next += n
	return n, nil
}

// locate finds where a document goes wrong. The parser tells a line that is
// often another one, and no column; but it reads from left to right, so the
// place is where the longest beginning ends that does not fail the same way.
func locate(data []byte, read int, err error) *Problem {
	budget := 8 * maxSize // bytes parsed again: a bound for hostile files
	want := sort(err)
	fails := func(n int) bool {
		budget -= n
		_, _, err := documents(data[:n])
		return err != nil && sort(err) == want
	}
	end := max(1, read)
	for budget > 0 {
		line := bytes.LastIndexByte(data[:end-1], '\n') + 1
		if line == 0 || !fails(line) {
			break
		}
		end = line
	}
	for budget > 0 {
		_, size := utf8.DecodeLastRune(data[:end])
		if end -= size; end == 0 || !fails(end) {
			break
		}
	}
	start := bytes.LastIndexByte(data[:end], '\n') + 1
	line := data[start:]
	if indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]; start+len(indent) >= end && bytes.ContainsRune(indent, '\t') {
		return problemAt(data, start+bytes.IndexByte(indent, '\t'), "a tab indents this line: use spaces")
	}
	return problemAt(data, end, explain(want))
}

var noise = regexp.MustCompile(`^(yaml: )?(line \d+: )?|'[^']+' referenced$`)

// sort is what kind of failure err is: its message without places and names.
func sort(err error) string { return strings.TrimSpace(noise.ReplaceAllString(err.Error(), "")) }

func explain(message string) string {
	switch {
	case message == "unknown anchor":
		return "is an alias to nothing, and aliases are not supported: write the value out, or quote a text that starts with '*'"
	case strings.HasPrefix(message, "mapping values are not allowed"):
		return "is not YAML: no mapping can start here: check the indentation, and quote a text that contains ': '"
	}
	return "is not YAML: " + message
}

func problemAt(data []byte, offset int, message string) *Problem {
	before := data[:offset]
	start := bytes.LastIndexByte(before, '\n') + 1
	return &Problem{
		Line:    bytes.Count(before, []byte{'\n'}) + 1,
		Column:  utf8.RuneCount(before[start:]) + 1,
		Message: message,
	}
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// checkNotation reports what this package does not read although it is YAML:
// anchors, aliases, merge keys, explicit tags. Each would let one place of the
// file change another.
func (d *decoder) checkNotation(n *yaml.Node, path string) {
	switch {
	case n.Kind == yaml.AliasNode:
		d.problemNode(n, path, "is an alias: aliases are not supported, write the value out")
	case n.Anchor != "":
		d.problemNode(n, path, "has an anchor: anchors are not supported, write the value out where it is used")
	case n.Style&yaml.TaggedStyle != 0:
		d.problemNode(n, path, "has a tag: tags are not supported, a plain value is enough")
	}
	for i, c := range n.Content {
		switch {
		case n.Kind == yaml.SequenceNode:
			d.checkNotation(c, index(path, i))
		case i%2 == 0 && c.Tag == "!!merge":
			d.problemNode(c, path, "is a merge key: merging is not supported, write the keys out")
		case i%2 == 0:
			d.checkNotation(c, path)
		default:
			d.checkNotation(c, join(path, n.Content[i-1].Value))
		}
	}
}

// foreign reports a node that checkNotation refuses.
func foreign(n *yaml.Node) bool { return n.Kind == yaml.AliasNode || n.Style&yaml.TaggedStyle != 0 }
