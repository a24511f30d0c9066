package config

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// TLS is how connections are secured. It may hold a private key, and shows
// nothing of itself, as a [Secret] does. The zero TLS is none.
type TLS struct{ client func() *tls.Config }

// Client returns the settings of a client, which are not to be changed; nil:
// connections are not secured.
func (t TLS) Client() *tls.Config {
	if t.client == nil {
		return nil
	}
	return t.client()
}

// Format hides the settings, whatever the verb.
func (TLS) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "[tls]") }

// MarshalText hides the settings from encoders.
func (TLS) MarshalText() ([]byte, error) { return []byte("[tls]"), nil }

// LogValue hides the settings from logs.
func (TLS) LogValue() slog.Value { return slog.StringValue("[tls]") }

// readTLS reads the files of the mapping at path. Messages repeat nothing of
// them.
func (d *decoder) readTLS(t *tlsFiles, path string) TLS {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.serverName}
	if t.ca != "" {
		c.RootCAs = d.authorities(t.ca, join(path, "ca_file"))
	}
	switch {
	case t.cert != "" && t.key != "":
		d.ownCertificate(c, t, path)
	case t.cert != "" && d.sound(join(path, "key_file")):
		d.problem(join(path, "cert_file"), "has no key_file beside it: the two come together")
	case t.key != "" && d.sound(join(path, "cert_file")):
		d.problem(join(path, "key_file"), "has no cert_file beside it: the two come together")
	}
	return TLS{func() *tls.Config { return c }}
}

func (d *decoder) authorities(name, path string) *x509.CertPool {
	text, ok := d.fileContents(name, path)
	if !ok {
		return nil
	}
	pool := x509.NewCertPool()
	certificates, wrong := parseCertificates(text)
	if wrong != "" {
		d.problem(path, "the file %s", wrong)
	}
	for _, c := range certificates {
		pool.AddCert(c)
	}
	return pool
}

func (d *decoder) ownCertificate(c *tls.Config, t *tlsFiles, path string) {
	cert, ok := d.fileContents(t.cert, join(path, "cert_file"))
	if ok {
		_, wrong := parseCertificates(cert)
		if ok = wrong == ""; !ok {
			d.problem(join(path, "cert_file"), "the file %s", wrong)
		}
	}
	key, readable := d.fileContents(t.key, join(path, "key_file"))
	if !ok || !readable {
		return
	}
	pair, err := tls.X509KeyPair(cert, key)
	switch {
	case err == nil:
		c.Certificates = []tls.Certificate{pair}
	case strings.Contains(err.Error(), "does not match"):
		d.problem(join(path, "key_file"), "the key in the file is not that of the certificate in cert_file")
	default: // err might tell of the key
		d.problem(join(path, "key_file"), "the file holds no private key that can be read: PEM, not encrypted")
	}
}

// parseCertificates reads one or more certificates in PEM, or says what is
// wrong.
func parseCertificates(text []byte) (certificates []*x509.Certificate, wrong string) {
	for {
		var block *pem.Block
		block, text = pem.Decode(text)
		switch {
		case block == nil && len(certificates) == 0:
			return nil, "holds no certificate in PEM"
		case block == nil:
			return certificates, ""
		case block.Type != "CERTIFICATE":
			return nil, "holds something else than certificates"
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Sprintf("holds no valid certificate at position %d", len(certificates)+1)
		}
		certificates = append(certificates, c)
	}
}
