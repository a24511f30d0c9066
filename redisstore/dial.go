package redisstore

import (
	"context"
	"crypto/tls"
	"net"
)

// locate says where the server is now. For a server of its own it is the
// configured address; behind Sentinel it is asked for at each dial.
type locate func(context.Context) (string, error)

// at locates a server that stays where it is.
func at(addr string) locate {
	return func(context.Context) (string, error) { return addr, nil }
}

// connect opens a connection to host:port, under TLS if c says so. The name
// that the certificate must carry is the configured one, and else the host.
func (c *Config) connect(ctx context.Context, addr string) (net.Conn, error) {
	if c.TLS == nil {
		return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	}
	settings := c.TLS
	if settings.ServerName == "" {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		settings = settings.Clone()
		settings.ServerName = host
	}
	return (&tls.Dialer{Config: settings}).DialContext(ctx, "tcp", addr)
}
