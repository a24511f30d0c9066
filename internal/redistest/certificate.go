package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority issues certificates for one test.
type Authority struct {
	t    testing.TB
	dir  string
	key  *ecdsa.PrivateKey
	cert *x509.Certificate

	// File is the authority's own certificate, in PEM.
	File string
}

// NewAuthority makes an authority that nobody trusts yet.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t, dir: t.TempDir(), key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der := a.sign(template, template, &a.key.PublicKey)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	a.cert = cert
	a.File = a.write("ca.pem", "CERTIFICATE", der)
	return a
}

// Certificate is a server's certificate and key, in files.
type Certificate struct {
	authority *Authority
	name      string
	cert, key string
}

// Issue makes a certificate for one DNS name, valid until then.
func (a *Authority) Issue(name string, until time.Time) Certificate {
	a.t.Helper()
	key := newKey(a.t)
	der := a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: until, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, a.cert, &key.PublicKey)
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	return Certificate{a, name, a.write(name+".pem", "CERTIFICATE", der), a.write(name+".key", "EC PRIVATE KEY", secret)}
}

// Trust is how a client trusts this authority for servers of one name; an
// empty name is that of whatever host is dialled.
func (a *Authority) Trust(name string) *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &tls.Config{RootCAs: pool, ServerName: name, MinVersion: tls.VersionTLS12}
}

func (c Certificate) flags(port string) []string {
	return []string{
		"--port", "0", "--tls-port", port, "--tls-auth-clients", "no", "--tls-replication", "yes",
		"--tls-cert-file", c.cert, "--tls-key-file", c.key, "--tls-ca-cert-file", c.authority.File,
	}
}

func (a *Authority) sign(template, parent *x509.Certificate, key *ecdsa.PublicKey) []byte {
	a.t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return der
}

func (a *Authority) write(name, kind string, der []byte) string {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Load reads the certificate and its key.
func (c Certificate) Load() (tls.Certificate, error) { return tls.LoadX509KeyPair(c.cert, c.key) }

// Files names the files of the certificate and of its key, in PEM.
func (c Certificate) Files() (cert, key string) { return c.cert, c.key }
