package subject

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

// MinimumKeyBytes is the least that a key decodes to: the output size of
// SHA-256, below which RFC 2104 §3 calls a key weak.
const MinimumKeyBytes = 32

// maximumKeyText bounds what ParseKey looks at: a larger file is not a key.
const maximumKeyText = 4096

// Key is one version of the secret that pseudonyms are made with. Its secret
// shows in no formatting, encoding or log. The zero Key is no key.
type Key struct {
	version uint32
	// secret is behind a function, because fmt and encoders print the bytes
	// of an unexported field without asking its type's methods.
	secret func() []byte
}

// ParseKey reads a key from base64 text, in the standard or the URL alphabet,
// padded or not; space around it is ignored. The version must not be 0. The
// error never quotes the text.
func ParseKey(version uint32, text string) (Key, error) {
	if version == 0 {
		return Key{}, errors.New("subject: key version 0 is not a version: at least 1")
	}
	text = strings.TrimSpace(text)
	if len(text) > maximumKeyText {
		return Key{}, fmt.Errorf("subject: key version %d: longer than %d bytes", version, maximumKeyText)
	}
	standard := strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
	secret, err := base64.RawStdEncoding.DecodeString(standard)
	if err != nil || strings.ContainsAny(text, "\r\n") {
		return Key{}, fmt.Errorf("subject: key version %d: not base64", version)
	}
	if len(secret) < MinimumKeyBytes {
		return Key{}, fmt.Errorf("subject: key version %d: %d bytes: at least %d", version, len(secret), MinimumKeyBytes)
	}
	return newKey(version, secret), nil
}

// GenerateKey returns a new random key as the text that [ParseKey] reads. The
// text is the secret: whoever has it can recompute pseudonyms.
func GenerateKey() string {
	secret := randomSecret()
	return base64.StdEncoding.EncodeToString(secret)
}

func newKey(version uint32, secret []byte) Key {
	return Key{version: version, secret: func() []byte { return secret }}
}

func randomSecret() []byte {
	secret := make([]byte, MinimumKeyBytes)
	_, _ = rand.Read(secret) // never fails: it ends the process instead
	return secret
}

// Version returns the key's version; 0 for the zero Key.
func (k Key) Version() uint32 { return k.version }

func (k Key) redacted() string { return fmt.Sprintf("key v%d (secret withheld)", k.version) }

// String returns the version and no secret.
func (k Key) String() string { return k.redacted() }

// Format writes String for every verb and flag.
func (k Key) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte(k.redacted())) }

// MarshalText returns String, so that no encoder looks inside.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.redacted()), nil }

// LogValue returns String.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.redacted()) }
