// Package muxpattern tells which patterns of [net/http.ServeMux] a request can
// match once its host and path are in canonical form.
//
// A mux accepts many that nothing ever matches: the route behind one would
// limit nobody, and nobody would notice.
package muxpattern

import (
	"fmt"
	"net/http"
	"path"
	"strings"
)

// Fault returns why no request matches a pattern, and what would be right; ""
// if one can. Of a pattern that a mux would not accept it may say nothing.
func Fault(pattern string) string {
	method, rest := "", pattern
	if i := strings.IndexAny(pattern, " \t"); i >= 0 {
		method, rest = pattern[:i], strings.TrimLeft(pattern[i+1:], " \t")
	}
	slash := strings.IndexByte(rest, '/')
	if slash < 0 || strings.Contains(method, "/") {
		return "" // no pattern
	}
	host, path := rest[:slash], rest[slash:]
	var faults []string
	note := func(fault string) {
		if fault != "" {
			faults = append(faults, fault)
		}
	}
	method, fault := canonicalMethod(method)
	note(fault)
	host, fault = canonicalHost(host, method)
	note(fault)
	path, fault = canonicalPath(path)
	note(fault)
	if len(faults) == 0 {
		return ""
	}
	if method != "" {
		method += " "
	}
	return fmt.Sprintf("never matches: %s; write %q", strings.Join(faults, ", and "), method+host+path)
}

// Each of these returns what would be right, and what is wrong with what is
// given.

func canonicalMethod(method string) (right, fault string) {
	if right = strings.ToUpper(method); right != method {
		return right, fmt.Sprintf("the method %q is not in capitals", method)
	}
	return method, ""
}

func canonicalHost(host, method string) (right, fault string) {
	right = host
	if strings.ContainsAny(host, "[]") || strings.Count(host, ":") > 1 {
		// A mux sees the brackets of an address where no port follows, and
		// only there.
		return "", fmt.Sprintf("the host %q is an IPv6 address", host)
	}
	var faults []string
	// Of CONNECT alone a mux compares the port.
	if name, port, found := strings.Cut(right, ":"); found && method != http.MethodConnect {
		right = name
		faults = append(faults, fmt.Sprintf("has the port %q", port))
	}
	if name := strings.TrimRight(right, "."); name != right {
		right = name
		faults = append(faults, "ends with a dot")
	}
	if lower := strings.ToLower(right); lower != right {
		right = lower
		faults = append(faults, "is not in small letters")
	}
	if i := strings.IndexFunc(right, notOfHosts); i >= 0 {
		if strings.HasPrefix(right, "*") {
			faults = append(faults, "is compared as it stands, without wildcards")
		} else {
			faults = append(faults, "is no name of letters, digits, '-', '_' and '.' as a browser sends it")
		}
		right = ""
	}
	if len(faults) == 0 {
		return right, ""
	}
	return right, fmt.Sprintf("the host %q %s", host, strings.Join(faults, ", "))
}

func notOfHosts(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', '0' <= r && r <= '9', strings.ContainsRune("-_.:", r):
		return false
	}
	return true
}

func canonicalPath(given string) (right, fault string) {
	right = given
	var faults []string
	// Within a wildcard's braces a '?' is the mux's to refuse.
	if head, query, found := strings.Cut(right, "?"); found && strings.Count(head, "{") == strings.Count(head, "}") {
		right = head
		faults = append(faults, fmt.Sprintf("the query %q is not compared", "?"+query))
	}
	dots := strings.NewReplacer("%2e", ".", "%2E", ".").Replace(right)
	if cleaned := clean(dots); cleaned != dots {
		right = cleaned
		faults = append(faults, fmt.Sprintf("the path %q is not clean", given))
	}
	return right, strings.Join(faults, ", and ")
}

// clean does what a mux does to the path of a request.
func clean(p string) string {
	cleaned := path.Clean(p)
	if strings.HasSuffix(p, "/") && cleaned != "/" {
		cleaned += "/"
	}
	return cleaned
}
