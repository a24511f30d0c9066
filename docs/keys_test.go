package docs

import (
	"path/filepath"
	"strings"
	"testing"
)

// A key in a file that others can read is nobody's secret, and the shell makes
// the file before stint can say how.
func TestKeysAreWrittenForTheirOwnerOnly(t *testing.T) {
	written := 0
	for _, page := range pages(t) {
		for _, b := range parse(t, page, filepath.Join("..", page)) {
			before, _, found := strings.Cut(b.text, "key new >")
			if !found {
				continue
			}
			written++
			if !strings.Contains(before, "umask 077\n") {
				t.Errorf("%s: a key is written without umask 077", b)
			}
		}
	}
	if written < 3 {
		t.Errorf("only %d keys are written", written)
	}
}
