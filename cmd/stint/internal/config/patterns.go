package config

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/stintlimit/stint/internal/muxpattern"
)

// placed is a ServeMux pattern and where it stands.
type placed struct{ pattern, path string }

// checkPatterns registers every pattern as the server will, and says which two
// contradict each other. ServeMux tells by a panic.
func (d *decoder) checkPatterns(c *draft) {
	var all []placed
	for i, p := range c.Exempt.Paths {
		all = append(all, placed{p, index("exempt.paths", i)})
	}
	for i, r := range c.Routes {
		all = append(all, placed{r.Match, index("routes", i) + ".match"})
	}
	mux := http.NewServeMux()
	for i, p := range all {
		if p.pattern == "" || !d.sound(p.path) {
			continue
		}
		if fault := muxpattern.Fault(p.pattern); fault != "" {
			d.problem(p.path, "%s", fault)
			continue
		}
		why := register(mux, p.pattern)
		if why == "" {
			continue
		}
		if other := conflicting(all[:i], p.pattern); other != nil {
			d.problem(p.path, "conflicts with %q of %s: %s", clip(other.pattern), other.path, clash(why))
		} else {
			d.problem(p.path, "is not a pattern of net/http.ServeMux, such as \"POST /orders/{id}\": %s", syntax(why))
		}
	}
}

// register returns why mux refuses the pattern, or "".
func register(mux *http.ServeMux, match string) (why string) {
	defer func() {
		if r := recover(); r != nil {
			why = fmt.Sprint(r)
		}
	}()
	mux.Handle(match, http.NotFoundHandler())
	return ""
}

// conflicting returns the first pattern that cannot stand beside this one, or
// nil.
func conflicting(others []placed, match string) *placed {
	if register(http.NewServeMux(), match) != "" {
		return nil
	}
	for i, o := range others {
		mux := http.NewServeMux()
		if o.pattern != "" && register(mux, o.pattern) == "" && register(mux, match) != "" {
			return &others[i]
		}
	}
	return nil
}

var location = regexp.MustCompile(`(?s)^pattern .* \(registered at .*\) conflicts with pattern .* \(registered at [^)]*\):\s*`)

// clash removes from ServeMux's message where in this program it was called.
func clash(why string) string {
	return strings.Join(strings.Fields(location.ReplaceAllString(why, "")), " ")
}

func syntax(why string) string {
	if _, tail, ok := strings.Cut(why, "\": "); ok {
		return tail
	}
	return why
}
