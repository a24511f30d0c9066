package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// text reads text that check accepts; check returns what is wrong with it.
func text(kind, bounds string, into *string, check func(string) string) shape {
	return shape{kind: kind, bounds: bounds, read: func(d *decoder, n *yaml.Node, path string) {
		s, ok := d.text(n, path)
		if !ok {
			return
		}
		*into = s
		if wrong := check(s); wrong != "" {
			d.problemNode(n, path, "%s", wrong)
		}
	}}
}

func (d *decoder) text(n *yaml.Node, path string) (string, bool) {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
		hint := ""
		if n.Kind == yaml.ScalarNode {
			hint = ": put it in quotes"
		}
		d.problemNode(n, path, "is %s, not text%s", describe(n), hint)
		return "", false
	}
	return n.Value, true
}

// choice reads one of a few words.
func choice[T any](into *T, words []string, values ...T) shape {
	return shape{kind: "word", bounds: strings.Join(words, ", "), read: func(d *decoder, n *yaml.Node, path string) {
		word, ok := d.text(n, path)
		if !ok {
			return
		}
		for i, w := range words {
			if w == word {
				*into = values[i]
				return
			}
		}
		d.problemNode(n, path, "%q is none of the choices; %s", clip(word), suggest(word, words, "they are"))
	}}
}

// truth reads true or false.
func truth(into *bool) shape {
	return shape{kind: "truth value", bounds: "true, false", read: func(d *decoder, n *yaml.Node, path string) {
		if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" || n.Value != "true" && n.Value != "false" {
			d.problemNode(n, path, "is %s, neither true nor false", describe(n))
			return
		}
		*into = n.Value == "true"
	}}
}

var plainInteger = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

// integer reads a whole number in plain decimal digits.
func integer[T ~int | ~int64 | ~uint32](into *T, least, most int64) shape {
	bounds := fmt.Sprintf("%d to %d", least, most)
	return shape{kind: "integer", bounds: bounds, read: func(d *decoder, n *yaml.Node, path string) {
		switch {
		case n.Kind != yaml.ScalarNode || n.Tag == "!!null" || n.Tag == "!!bool":
			d.problemNode(n, path, "is %s, not an integer", describe(n))
			return
		case n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 && plainInteger.MatchString(n.Value):
			d.problemNode(n, path, "is text, not an integer: remove the quotes")
			return
		case !plainInteger.MatchString(n.Value):
			d.problemNode(n, path, "%q is not an integer in plain decimal digits, as in 1000", clip(n.Value))
			return
		}
		v, err := strconv.ParseInt(n.Value, 10, 64)
		if err != nil || v < least || v > most {
			d.problemNode(n, path, "%s is out of range: %s", clip(n.Value), bounds)
			return
		}
		*into = T(v)
	}}
}
