package config

import (
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// units are in the order in which a duration names them.
var units = []struct {
	name string
	size time.Duration
}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}}

const durationSyntax = "whole numbers with units, largest first, as in 250ms, 10s, 1h30m or 1d"

// duration reads a length of time.
func duration(into *time.Duration, least, most time.Duration) shape {
	bounds := formatDuration(least) + " to " + formatDuration(most)
	return shape{kind: "duration", bounds: bounds, read: func(d *decoder, n *yaml.Node, path string) {
		switch {
		case n.Kind != yaml.ScalarNode || n.Tag == "!!null" || n.Tag == "!!bool":
			d.problemNode(n, path, "is %s, not a duration: %s", describe(n), durationSyntax)
			return
		case plainInteger.MatchString(n.Value):
			d.problemNode(n, path, "%q has no unit: ms, s, m, h or d, as in %ss", clip(n.Value), clip(strings.TrimPrefix(n.Value, "-")))
			return
		}
		v, wrong := parseDuration(n.Value)
		switch {
		case wrong != "":
			d.problemNode(n, path, "%q is not a duration: %s; %s", clip(n.Value), wrong, durationSyntax)
		case v < least || v > most:
			d.problemNode(n, path, "%s is out of range: %s", clip(n.Value), bounds)
		default:
			*into = v
		}
	}}
}

// parseDuration returns the length, or what is wrong with text.
func parseDuration(text string) (total time.Duration, wrong string) {
	const most = 1 << 62
	if strings.HasPrefix(text, "-") {
		return 0, "it is negative"
	}
	next := 0
	for rest := text; rest != "" || text == ""; {
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		if digits == 0 {
			return 0, "a number is missing"
		}
		if digits > 15 {
			return 0, "it is too long"
		}
		number := rest[:digits]
		rest = rest[digits:]
		name := rest[:len(rest)-len(strings.TrimLeft(rest, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZµ"))]
		rest = rest[len(name):]
		unit := -1
		for i, u := range units {
			if u.name == name {
				unit = i
			}
		}
		switch {
		case name == "" && strings.HasPrefix(rest, "."):
			return 0, "fractions are not supported"
		case name == "":
			return 0, number + " has no unit"
		case unit < 0:
			return 0, fmt.Sprintf("there is no unit %q", clip(name))
		case unit < next:
			return 0, fmt.Sprintf("%q stands too late", name)
		}
		next = unit + 1
		var v int64
		for _, c := range number {
			v = v*10 + int64(c-'0')
		}
		if v > (most-int64(total))/int64(units[unit].size) {
			return 0, "it is too long"
		}
		total += time.Duration(v) * units[unit].size
	}
	return total, ""
}

// formatDuration writes d as parseDuration reads it.
func formatDuration(d time.Duration) string {
	if d < time.Millisecond {
		return "0s"
	}
	text := ""
	for _, u := range units {
		if n := d / u.size; n > 0 {
			text += fmt.Sprintf("%d%s", n, u.name)
			d %= u.size
		}
	}
	return text
}
