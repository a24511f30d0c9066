package config

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// Overrides are what the command line says in place of the file. Empty fields
// say nothing.
type Overrides struct {
	Listen      string
	AdminListen string
	Upstream    string
}

// Load reads the file with that name. A file that cannot be read is an error
// of package os; everything else that is wrong is an [*Error].
func Load(name string, o Overrides) (*Config, error) {
	data, err := readBounded(name, maxSize)
	if err != nil {
		return nil, err
	}
	return Parse(name, data, o)
}

// Parse reads the text of a file that would have that name: messages name it,
// and other files are looked for in its directory.
func Parse(name string, data []byte, o Overrides) (*Config, error) {
	return parse(name, data, o, os.LookupEnv)
}

func parse(name string, data []byte, o Overrides, lookupEnv func(string) (string, bool)) (*Config, error) {
	node, problem := parseYAML(data)
	if problem != nil {
		problem.File = name
		return nil, newError([]Problem{*problem})
	}
	d := &decoder{
		file: name, dir: filepath.Dir(name), lookupEnv: lookupEnv,
		places: map[string]*yaml.Node{"": node}, unsound: map[string]bool{},
	}
	d.checkNotation(node, "")
	var c draft
	if node.Kind != yaml.MappingNode {
		d.problem("", "is %s, not a mapping with the keys of a configuration", describe(node))
		return nil, newError(d.problems)
	}
	d.read(root(&c), node, "")
	d.override(&c, o)
	d.check(&c)
	if len(d.problems) > 0 {
		return nil, newError(d.problems)
	}
	sum := sha256.Sum256(data)
	c.Digest = hex.EncodeToString(sum[:8])
	return &c.Config, nil
}

// override reads the flags with the shapes of the keys that they replace.
func (d *decoder) override(c *draft, o Overrides) {
	for _, f := range []struct {
		flag, value string
		shape       shape
	}{
		{"--listen", o.Listen, address(&c.Listen, true)},
		{"--admin-listen", o.AdminListen, address(&c.AdminListen, true)},
		{"--upstream", o.Upstream, httpURL(&c.Upstream)},
	} {
		if f.value == "" {
			continue
		}
		flag := &decoder{file: f.flag, unsound: map[string]bool{}}
		f.shape.read(flag, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: f.value}, "")
		for _, p := range flag.problems {
			p.Line, p.Column = 0, 0
			d.problems = append(d.problems, p)
		}
	}
}

//go:embed example.yaml
var example []byte

// Example returns the configuration that a server runs without a file.
func Example(o Overrides) (*Config, error) { return Parse("built-in example", example, o) }

// ExampleText returns the built-in example as it would stand in a file.
func ExampleText() string { return string(example) }
