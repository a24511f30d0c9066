package edge

import (
	"fmt"
	"strings"
)

// Problem is one thing wrong with a [Config].
type Problem struct {
	// Field is a path in Config: "Routes[2].Charges[0].Policy",
	// "Default.Cost", "ClientIP.Trusted[1]", "ExemptPaths[0]".
	Field   string
	Route   string // the id of the route it stands in, as given; "" outside
	Message string // what is wrong, and what would be right
}

// ConfigError lists everything that is wrong with a [Config].
type ConfigError struct{ Problems []Problem }

func (e *ConfigError) Error() string {
	var b strings.Builder
	b.WriteString("edge:")
	for i, p := range e.Problems {
		if i > 0 {
			b.WriteByte(';')
		}
		b.WriteByte(' ')
		b.WriteString(p.Field)
		if p.Route != "" {
			fmt.Fprintf(&b, " (route %q)", p.Route)
		}
		b.WriteString(": ")
		b.WriteString(p.Message)
	}
	return b.String()
}

// problems collects what is wrong, under the field and the route at hand.
type problems struct {
	list  []Problem
	field string // a prefix of what add is given
	route string
}

func (p *problems) add(field, format string, args ...any) {
	p.list = append(p.list, Problem{Field: p.field + field, Route: p.route, Message: fmt.Sprintf(format, args...)})
}

// within returns a collector for a part, whose problems are kept in p by join.
func (p *problems) within(field, route string) *problems {
	return &problems{field: p.field + field, route: route}
}

func (p *problems) join(part *problems) { p.list = append(p.list, part.list...) }
