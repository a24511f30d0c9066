package app

import (
	"fmt"
	"net/http"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/cmd/stint/internal/config"
	"github.com/stintlimit/stint/cmd/stint/internal/gateway"
	"github.com/stintlimit/stint/cmd/stint/internal/telemetry"
	"github.com/stintlimit/stint/httplimit"
	"github.com/stintlimit/stint/internal/clientip"
	"github.com/stintlimit/stint/subject"
)

// limit puts the limit in front of a handler.
func (s *server) limit(l *stint.Limiter, metrics *telemetry.Telemetry, next http.Handler) (http.Handler, error) {
	c := s.config
	if len(c.Routes) == 0 && len(c.Default) == 0 {
		s.options.Logger.Warn("nothing is limited: there are no routes, and default charges nothing")
		return next, nil
	}
	keys, err := keyRing(c.Identity)
	if err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	m, err := httplimit.New(l, keys, limits(c),
		httplimit.WithLogger(s.options.Logger), httplimit.WithUnidentified(metrics.Unidentified))
	if err != nil {
		return nil, err
	}
	return m.Handler(next), nil
}

// keyRing returns the configured keys; without any, one that lives as long as
// the process, which is as long as budgets in memory do.
func keyRing(c config.Identity) (*subject.KeyRing, error) {
	if len(c.Keys) == 0 {
		return subject.EphemeralKeyRing(), nil
	}
	return subject.NewKeyRing(c.ActiveVersion, c.Keys...)
}

func limits(c *config.Config) httplimit.Config {
	h := httplimit.Config{
		Charges:         charges(c.Default),
		ExemptPaths:     c.Exempt.Paths,
		ExemptNetworks:  c.Exempt.Networks,
		TrustedProxies:  c.Identity.TrustedProxies,
		ClientIPHeader:  c.Identity.ClientIPHeader,
		APIKeyHeader:    c.Identity.APIKeyHeader,
		PrincipalHeader: c.Identity.PrincipalHeader,
		RetryAfter:      c.RetryAfter,
	}
	for _, r := range c.Routes {
		h.Routes = append(h.Routes, httplimit.Route{ID: r.ID, Match: r.Match, Cost: r.Cost, Charges: charges(r.Charges)})
	}
	return h
}

func charges(cs []config.Charge) []httplimit.Charge {
	var out []httplimit.Charge
	for _, c := range cs {
		h := httplimit.Charge{Policy: c.Policy, Subject: c.Subject, PerRoute: c.PerRoute, SkipMissing: c.SkipMissing}
		if c.Subject == subject.ClientIP {
			h.IPv6Prefix = c.IPv6Prefix
		}
		out = append(out, h)
	}
	return out
}

// behind returns what stands behind the limit.
func (s *server) behind() (http.Handler, error) {
	c := s.config
	if c.Upstream == nil {
		return gateway.Page(), nil
	}
	resolver, problems := clientip.New(clientip.Config{Trusted: c.Identity.TrustedProxies})
	if len(problems) > 0 {
		return nil, fmt.Errorf("identity: %s: %s", problems[0].Field, problems[0].Message)
	}
	s.proxy = gateway.New(gateway.Config{
		Upstream:        c.Upstream,
		Trusted:         resolver.TrustsPeer,
		ClientIPHeader:  c.Identity.ClientIPHeader,
		PrincipalHeader: c.Identity.PrincipalHeader,
		APIKeyHeader:    c.Identity.APIKeyHeader,
		OnError:         newUpstreamLog(s.options.Logger).failed,
		Logger:          s.options.Logger,
	})
	return s.proxy, nil
}
