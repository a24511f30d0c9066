package config

import (
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`)

// join appends a key to a path. A key that is not a word, and so cannot be
// ours, is not repeated.
func join(path, key string) string {
	if !plainKey.MatchString(key) {
		key = "?"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

func index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// parent removes the last key or index of a path.
func parent(path string) string { return path[:max(0, strings.LastIndexAny(path, ".["))] }

// clip shortens text for a message.
func clip(text string) string {
	const most = 40
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// describe says what a node is, without its value.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	switch n.Tag {
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "a truth value"
	case "!!null":
		return "nothing"
	case "!!timestamp":
		return "a date"
	}
	return "text"
}
