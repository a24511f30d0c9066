package edge

import (
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"regexp"
	"strings"

	"github.com/gaissmai/bart"

	"github.com/stintlimit/stint/internal/clientip"
	"github.com/stintlimit/stint/internal/muxpattern"
	"github.com/stintlimit/stint/subject"
)

// New builds a bridge. The error is a [*ConfigError] with every problem found.
func New(c Config) (*Bridge, error) {
	var p problems
	b := &Bridge{
		limiter:        c.Limiter,
		apiKeyHeader:   textproto.CanonicalMIMEHeaderKey(c.APIKeyHeader),
		principal:      c.Principal,
		principalField: textproto.CanonicalMIMEHeaderKey(c.PrincipalHeader),
		onUnidentified: c.OnUnidentified,
	}
	if c.Limiter == nil {
		p.add("Limiter", "is nil: stint.New makes one")
	}
	b.identities(&c, &p)
	b.exemptions(&c, &p)
	b.table(&c, &p)
	if len(p.list) > 0 {
		return nil, &ConfigError{Problems: p.list}
	}
	return b, nil
}

func (b *Bridge) identities(c *Config, p *problems) {
	var err error
	if c.Keys == nil {
		p.add("Keys", "is nil: subject.NewKeyRing makes a key ring, subject.EphemeralKeyRing one for this process")
	} else if b.pseudonymizer, err = subject.NewPseudonymizer(c.Keys, c.Normalisers); err != nil {
		p.add("Normalisers", "%v", err)
	}
	var faults []clientip.Problem
	b.resolver, faults = clientip.New(c.ClientIP)
	for _, f := range faults {
		p.add("ClientIP."+f.Field, "%s", f.Message)
	}
	headers := map[string]string{}
	for _, h := range []struct{ field, name string }{
		{"ClientIP.Header", c.ClientIP.Header},
		{"APIKeyHeader", c.APIKeyHeader},
		{"PrincipalHeader", c.PrincipalHeader},
	} {
		if h.name == "" {
			continue
		}
		key := textproto.CanonicalMIMEHeaderKey(h.name)
		if !clientip.ValidHeader(h.name) && h.field != "ClientIP.Header" {
			p.add(h.field, "%q is not a header name", h.name)
		}
		if other, taken := headers[key]; taken {
			p.add(h.field, "%q is already the %s", h.name, other)
		}
		headers[key] = h.field
	}
	if c.PrincipalHeader != "" && len(c.ClientIP.Trusted) == 0 && !c.ClientIP.TrustUnix {
		p.add("PrincipalHeader", "is never believed: no peer is trusted")
	}
	if c.PrincipalHeader != "" && c.Principal != nil {
		p.add("PrincipalHeader", "is never read: Principal replaces it")
	}
}

func (b *Bridge) exemptions(c *Config, p *problems) {
	if len(c.ExemptNetworks) == 0 {
		return
	}
	b.exempt = new(bart.Lite)
	for i, network := range c.ExemptNetworks {
		canonical, err := clientip.CanonicalPrefix(network)
		if err != nil {
			p.add(fmt.Sprintf("ExemptNetworks[%d]", i), "%v", err)
			continue
		}
		b.exempt.Insert(canonical)
	}
}

func (b *Bridge) table(c *Config, p *problems) {
	b.routes = &table{mux: http.NewServeMux(), byPattern: map[string]*route{}}
	if c.Default == nil {
		p.add("Default", "is missing: say what requests are charged that no route matches; it may have no charges")
	} else {
		d := *c.Default
		part := p.within("Default.", DefaultRoute)
		if d.ID != "" && d.ID != DefaultRoute {
			part.add("ID", "%q: the default route is called %q", d.ID, DefaultRoute)
		}
		if d.Match != "" {
			part.add("Match", "%q: the default route matches what the others do not", d.Match)
		}
		d.ID = DefaultRoute
		b.routes.fallback = b.compile(c, &d, part)
		p.join(part)
	}
	patterns := map[string]string{} // who registered a pattern
	for i, match := range c.ExemptPaths {
		field := fmt.Sprintf("ExemptPaths[%d]", i)
		if err := b.routes.register(match, &route{exempt: true}, patterns, field); err != nil {
			p.add(field, "%v", err)
		}
	}
	ids := map[string]int{}
	for i := range c.Routes {
		r := &c.Routes[i]
		part := p.within(fmt.Sprintf("Routes[%d].", i), r.ID)
		switch j, taken := ids[r.ID]; {
		case !idPattern.MatchString(r.ID):
			part.add("ID", "%q is not an id: a letter, then at most 31 letters, digits, '.', '_' or '-'", r.ID)
		case r.ID == DefaultRoute:
			part.add("ID", "%q is what the default route is called", r.ID)
		case taken:
			part.add("ID", "%q is already the id of Routes[%d]", r.ID, j)
		default:
			ids[r.ID] = i
		}
		if len(r.Charges) == 0 {
			part.add("Charges", "a route charges something: to let it pass, exempt its path")
		}
		compiled := b.compile(c, r, part)
		if err := b.routes.register(r.Match, compiled, patterns, "route "+r.ID); err != nil {
			part.add("Match", "%v", err)
		}
		p.join(part)
	}
	b.routes.catchAll()
}

var (
	idPattern    = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]{0,31}$`)
	registeredAt = regexp.MustCompile(` \(registered at [^)]*\)`)
)

// register adds a pattern to the mux, whose panics become errors. owners maps
// the patterns so far to what they belong to.
func (t *table) register(match string, r *route, owners map[string]string, owner string) (err error) {
	defer func() {
		if v := recover(); v != nil {
			text := registeredAt.ReplaceAllString(fmt.Sprint(v), "")
			text = strings.ReplaceAll(strings.TrimPrefix(text, "http: "), "\n", " ")
			for other, who := range owners {
				if strings.Contains(text, fmt.Sprintf("conflicts with pattern %q", other)) {
					text += " (" + who + ")"
				}
			}
			err = fmt.Errorf("%s", text)
		}
	}()
	if match == "" {
		return fmt.Errorf("is empty: a ServeMux pattern such as \"POST /orders/{id}\"")
	}
	if fault := muxpattern.Fault(match); fault != "" {
		return errors.New(fault)
	}
	t.mux.Handle(match, r)
	t.byPattern[match] = r
	owners[match] = owner
	return nil
}

// catchAll spares the mux its search for other methods of a path that nothing
// matches. It fails, and is not needed, if a route matches everything.
func (t *table) catchAll() {
	defer func() { _ = recover() }()
	t.mux.Handle("/", t.fallback)
}
