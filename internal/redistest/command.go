package redistest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// commandTimeout bounds one command of [Server.Do].
const commandTimeout = 2 * time.Second

// Do sends one command on a connection of its own and returns a reply that is
// a status, an integer or a string; "" for nil. It may be called by any
// goroutine, also while the server is being stopped.
func (s *Server) Do(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.addr)
	if err != nil {
		return "", err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(commandTimeout))
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := io.WriteString(c, b.String()); err != nil {
		return "", err
	}
	reply, err := readReply(bufio.NewReader(c))
	if err != nil {
		return "", fmt.Errorf("%s: %w", args[0], err)
	}
	return reply, nil
}

func readReply(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return "", errors.New("an empty reply")
	}
	switch kind, rest := line[0], line[1:]; kind {
	case '+', ':':
		return rest, nil
	case '-':
		return "", errors.New(rest)
	case '$':
		n, err := strconv.Atoi(rest)
		if err != nil || n < 0 {
			return "", err
		}
		text := make([]byte, n+2)
		if _, err := io.ReadFull(r, text); err != nil {
			return "", err
		}
		return string(text[:n]), nil
	}
	return "", fmt.Errorf("a reply of a kind that is not read here: %q", line)
}
