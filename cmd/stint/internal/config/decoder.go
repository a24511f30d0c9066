package config

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A shape reads one node, and describes for the reference what it accepts.
type shape struct {
	kind   string // what the reference calls it
	bounds string // the range, in words
	read   func(d *decoder, n *yaml.Node, path string)
	inner  []setting // the keys of a mapping, or of each mapping in a list
	list   bool
}

// A setting is one key of a mapping.
type setting struct {
	key string
	shape

	// fallback is what an absent key means, as text of the file: it is read
	// by the same shape. Empty: the key is required, unless note says what
	// happens without it.
	fallback string
	note     string

	// refuse explains why a key that somebody may expect does not exist.
	refuse string
}

// decoder collects what is wrong while shapes read nodes.
type decoder struct {
	file      string
	dir       string
	lookupEnv func(string) (string, bool)
	places    map[string]*yaml.Node // by path; keys that are absent have none
	unsound   map[string]bool       // paths that have a problem already
	problems  []Problem
}

// problem reports at the node of path, or of the nearest part of the path that
// is in the file.
func (d *decoder) problem(path, format string, args ...any) {
	for at := path; ; at = parent(at) {
		if n, ok := d.places[at]; ok || at == "" {
			d.problemNode(n, path, format, args...)
			return
		}
	}
}

func (d *decoder) problemNode(n *yaml.Node, path, format string, args ...any) {
	p := Problem{File: d.file, Line: 1, Column: 1, Path: path, Message: fmt.Sprintf(format, args...)}
	if n != nil && n.Line > 0 {
		p.Line, p.Column = n.Line, n.Column
	}
	d.problems = append(d.problems, p)
	for at := path; at != ""; at = parent(at) {
		d.unsound[at] = true
	}
}

// sound reports that nothing at or below path is wrong so far.
func (d *decoder) sound(path string) bool { return !d.unsound[path] }

// given reports that the file itself says something at path.
func (d *decoder) given(path string) bool { return d.places[path] != nil }

func (d *decoder) read(s shape, n *yaml.Node, path string) {
	if foreign(n) {
		d.unsound[path] = true
		return
	}
	s.read(d, n, path)
}

// mapping reads a mapping with exactly these keys.
func mapping(settings []setting) shape {
	return shape{kind: "mapping", inner: settings, read: func(d *decoder, n *yaml.Node, path string) {
		if !d.isMapping(n, path) {
			return
		}
		found := d.entries(n, path, settings)
		for _, s := range settings {
			switch v, present := found[s.key]; {
			case present && v == nil: // reported
			case present:
				d.places[join(path, s.key)] = v
				d.read(s.shape, v, join(path, s.key))
			case s.fallback != "":
				d.read(s.shape, parseFallback(s.fallback), join(path, s.key))
			case s.note == "" && s.refuse == "":
				d.problemNode(n, join(path, s.key), "is missing")
			}
		}
	}}
}

// entries returns the values in n of the keys that settings name, and reports
// the others.
func (d *decoder) entries(n *yaml.Node, path string, settings []setting) map[string]*yaml.Node {
	found := map[string]*yaml.Node{}
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind != yaml.ScalarNode {
			d.problemNode(k, path, "a key is text, not %s", describe(k))
			continue
		}
		if k.Tag == "!!merge" || foreign(k) {
			continue
		}
		if line, twice := lines[k.Value]; twice {
			d.problemNode(k, join(path, k.Value), "stands here twice: first on line %d", line)
			continue
		}
		lines[k.Value] = k.Line
		s := slices.IndexFunc(settings, func(s setting) bool { return s.key == k.Value })
		switch {
		case s < 0 && mayHoldSecret(k.Value): // something is where it does not belong
			d.problemNode(k, path, "unknown key; the keys here are %s", strings.Join(keysOf(settings), ", "))
		case s < 0:
			d.problemNode(k, path, "unknown key %q; %s", clip(k.Value), suggest(k.Value, keysOf(settings), "the keys here are"))
		case settings[s].refuse != "":
			d.problemNode(k, join(path, k.Value), "%s", settings[s].refuse)
		case isNull(v) && v.Value == "":
			d.problemNode(k, join(path, k.Value), "has no value: give one, or leave the key out")
			found[k.Value] = nil
			d.places[join(path, k.Value)] = k
		default:
			found[k.Value] = v
		}
	}
	return found
}

func (d *decoder) isMapping(n *yaml.Node, path string) bool {
	if n.Kind != yaml.MappingNode {
		d.problemNode(n, path, "is %s, not a mapping", describe(n))
		return false
	}
	return true
}

// orOff reads what the mapping s does, or the word off.
func orOff(off *bool, s shape) shape {
	readMapping := s.read
	s.kind = "mapping, or the word off"
	s.read = func(d *decoder, n *yaml.Node, path string) {
		switch {
		case n.Kind == yaml.ScalarNode && n.Tag == "!!str" && n.Value == "off":
			*off = true
		case n.Kind != yaml.MappingNode:
			d.problemNode(n, path, "is %s, neither a mapping nor the word off", describe(n))
		default:
			readMapping(d, n, path)
		}
	}
	return s
}

// list reads a list of items, each of the shape that item binds to it.
func list[T any](into *[]T, kind string, item func(*T) shape) shape {
	sample := item(new(T))
	return shape{kind: kind, bounds: sample.bounds, inner: sample.inner, list: true,
		read: func(d *decoder, n *yaml.Node, path string) {
			if n.Kind != yaml.SequenceNode {
				d.problemNode(n, path, "is %s, not a list", describe(n))
				return
			}
			*into = make([]T, len(n.Content))
			for i, c := range n.Content {
				if c.Line > 0 {
					d.places[index(path, i)] = c
				}
				d.read(item(&(*into)[i]), c, index(path, i))
			}
		}}
}

// optional reads into a new T, which exists iff the key does.
func optional[T any](into **T, item func(*T) shape) shape {
	s := item(new(T))
	s.read = func(d *decoder, n *yaml.Node, path string) {
		*into = new(T)
		item(*into).read(d, n, path)
	}
	return s
}

// exactlyOne reads a mapping with one of these keys.
func exactlyOne(what string, settings []setting) shape {
	return shape{kind: "mapping", inner: settings, read: func(d *decoder, n *yaml.Node, path string) {
		if !d.isMapping(n, path) {
			return
		}
		known := keysOf(settings)
		if len(n.Content) != 2 {
			d.problemNode(n, path, "has %d keys: an %s is exactly one of %s", len(n.Content)/2, what, strings.Join(known, ", "))
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			k, v := n.Content[i], n.Content[i+1]
			s := slices.Index(known, k.Value)
			switch {
			case k.Kind == yaml.ScalarNode && s >= 0:
				d.places[join(path, k.Value)] = v
				d.read(settings[s].shape, v, join(path, k.Value))
			case k.Kind == yaml.ScalarNode:
				d.problemNode(k, path, "%q is no %s; %s", clip(k.Value), what, suggest(k.Value, known, "there are"))
			default:
				d.problemNode(k, path, "a key is text, not %s", describe(k))
			}
		}
	}}
}

func parseFallback(text string) *yaml.Node {
	var n yaml.Node
	if err := yaml.Unmarshal([]byte(text), &n); err != nil {
		panic("config: a default that is no YAML: " + text)
	}
	root := n.Content[0]
	erasePlaces(root)
	return root
}

// erasePlaces marks nodes that are in no file.
func erasePlaces(n *yaml.Node) {
	n.Line, n.Column = 0, 0
	for _, c := range n.Content {
		erasePlaces(c)
	}
}
