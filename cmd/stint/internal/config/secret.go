package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/stintlimit/stint/subject"
)

// Secret is text that no log line and no error may show. Only Reveal does. The
// zero Secret is empty.
type Secret struct {
	// text is behind a function, because fmt shows what a pointer leads to,
	// whatever its methods say, if a verb does not fit.
	text func() string
}

// NewSecret wraps text.
func NewSecret(text string) Secret { return Secret{func() string { return text }} }

// Reveal returns the text.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return s.text()
}

// Format hides the text, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "[secret]") }

// MarshalText hides the text from encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte("[secret]"), nil }

// LogValue hides the text from logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue("[secret]") }

// source is where a secret is to be read from: a file or the environment.
type source struct{ file, env string }

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// secret reads what the mapping at path names with one of two keys. Messages
// repeat neither a file's name nor a variable's, for somebody might have put
// the secret itself there.
func (d *decoder) secret(s source, path, fileKey, envKey string) (string, bool) {
	switch {
	case s.file != "" && s.env != "":
		d.problem(join(path, envKey), "stands beside %s: give one of the two", fileKey)
	case s.file != "":
		return d.secretFile(s.file, join(path, fileKey))
	case s.env != "":
		return d.secretEnv(s.env, join(path, envKey))
	}
	return "", false
}

func (d *decoder) secretFile(name, path string) (string, bool) {
	b, ok := d.fileContents(name, path)
	if !ok {
		return "", false
	}
	return d.notBlank(string(b), path, "the file")
}

// fileContents reads a file that the configuration names at path.
func (d *decoder) fileContents(name, path string) ([]byte, bool) {
	if what := contents(name); what != "" {
		d.problem(path, "is not a file's name but looks like %s: write it to a file and name that file here", what)
		return nil, false
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(d.dir, name)
	}
	b, err := readBounded(name, 1<<16)
	if err != nil {
		d.problem(path, "the file cannot be read: %s (relative names start at the directory of the configuration)", reason(err))
		return nil, false
	}
	return b, true
}

func (d *decoder) secretEnv(name, path string) (string, bool) {
	if !envName.MatchString(name) || contents(name) != "" {
		d.problem(path, "is not the name of an environment variable: letters, digits and '_', as in STINT_KEY")
		return "", false
	}
	text, set := d.lookupEnv(name)
	if !set {
		d.problem(path, "the environment variable is not set")
		return "", false
	}
	return d.notBlank(text, path, "the environment variable")
}

func (d *decoder) notBlank(text, path, what string) (string, bool) {
	text = strings.TrimSpace(text)
	if text == "" {
		d.problem(path, "%s is empty", what)
	}
	return text, text != ""
}

// contents says what stands where a name should, or "". It only makes a message
// more helpful: a name in base64's alphabet may still be a name.
func contents(text string) string {
	_, err := subject.ParseKey(1, text)
	switch {
	case err == nil && (strings.HasSuffix(text, "=") || !strings.ContainsAny(text, "/")):
		return "a key"
	case strings.Contains(text, "://"):
		return "a URL"
	case strings.Contains(text, "-----BEGIN"):
		return "what the file should hold"
	}
	return ""
}

// readBounded reads a regular file, or a pipe, of at most limit bytes.
func readBounded(name string, limit int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f, limit)
}

// reason is err without the name of the file.
func reason(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err.Error()
	}
	return err.Error()
}
