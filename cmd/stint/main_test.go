package main

import "testing"

func TestReachable(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:8080":   "127.0.0.1:8080",
		"[::]:8080":        "localhost:8080",
		"0.0.0.0:8080":     "localhost:8080",
		"[2001:db8::1]:80": "[2001:db8::1]:80",
	} {
		if got := reachable(listen); got != want {
			t.Errorf("reachable(%q) = %q, want %q", listen, got, want)
		}
	}
}

func TestAReleaseOverridesTheBuild(t *testing.T) {
	before := release
	defer func() { release = before }()
	release = "v9.8.7"
	if got := version(); got != "v9.8.7" {
		t.Errorf("version() = %q", got)
	}
	release = ""
	if got := version(); got == "" {
		t.Error("a build has no version")
	}
}
