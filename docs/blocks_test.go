package docs

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// block is a fenced block of a page.
type block struct {
	page string
	line int // of its fence
	lang string
	text string // ends in a newline
	file string // "file:" of the comment before it
	skip string // "not run:" of the comment before it
}

func (b block) String() string { return fmt.Sprintf("%s:%d: %s block", b.page, b.line, b.lang) }

// lines returns the text without its last newline, line by line.
func (b block) lines() []string { return strings.Split(strings.TrimSuffix(b.text, "\n"), "\n") }

var comment = regexp.MustCompile(`^<!-- (file|not run): *(.*?) *-->$`)

// parse returns the blocks of a page, in order.
func parse(t *testing.T, page, path string) []block {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()

	var blocks []block
	var b, next block
	inside := false
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		text := lines.Text()
		trimmed := strings.TrimSpace(text)
		switch {
		case inside && trimmed == "```":
			blocks = append(blocks, b)
			inside, next = false, block{}
		case inside:
			b.text += text + "\n"
		case strings.HasPrefix(trimmed, "```"):
			b, inside = next, true
			b.page, b.line, b.lang = page, n, strings.TrimPrefix(trimmed, "```")
		case comment.MatchString(trimmed):
			m := comment.FindStringSubmatch(trimmed)
			if m[2] == "" {
				t.Errorf("%s:%d: a comment without a value: %s", page, n, trimmed)
			}
			if m[1] == "file" {
				next.file = m[2]
			} else {
				next.skip = m[2]
			}
		case trimmed != "":
			if next != (block{}) {
				t.Errorf("%s:%d: the comment before this line belongs to no block", page, n)
			}
			next = block{}
		}
	}
	if inside {
		t.Errorf("%s: its block is never closed", b)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return blocks
}
