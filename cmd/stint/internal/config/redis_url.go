package config

import (
	"net/url"
	"strings"
)

// mayHoldSecret reports that text is, or was meant to be, a URL or a key file's
// contents. No message repeats it.
func mayHoldSecret(text string) bool {
	return strings.Contains(text, "//") || strings.Contains(text, "@") || strings.Contains(text, "-----")
}

// checkURL says what is wrong with the URL of a Redis server. Package
// redisstore, which reads it in the end, has the same rules; here their breach
// has a place.
func checkURL(text string, mayHaveAccount bool) string {
	const form = "redis:// or, with TLS, rediss://, then host:port"
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return "the URL cannot be read: is a character of its password not percent-encoded? It is " + form
	case u.Scheme != "redis" && u.Scheme != "rediss" || u.Opaque != "":
		return "is not such a URL: " + form
	case u.User != nil && !mayHaveAccount:
		return "the URL holds a user or a password, which does not stand here: give username and password_file beside it, or the whole URL in url_file"
	case !isHost(u.Hostname()) || badPort(u):
		return "the URL has no valid host and port: " + form
	case u.Path != "" && u.Path != "/" && u.Path != "/0":
		return "the URL names a database: only 0 is supported"
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "the URL has a query or a fragment, which mean nothing here"
	}
	if password, _ := u.User.Password(); u.User.Username() != "" && password == "" {
		return "the URL names a user without a password"
	}
	return ""
}

// hasAccount reports whether a URL that checkURL accepts names a user or a
// password.
func hasAccount(text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return false
	}
	password, _ := u.User.Password()
	return u.User.Username() != "" || password != ""
}
