package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
)

// body is a request's body that remembers how reading it failed. Neither the
// transport's error nor its text tells a client that breaks off or sends
// garbage from an upstream that does.
type body struct {
	io.ReadCloser
	failed atomic.Bool // the transport reads in a goroutine of its own
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.failed.Store(true)
	}
	return n, err
}

type bodyKey struct{}

// rememberBody keeps the body in the context too: httputil wraps what is in
// the request.
func rememberBody(r *http.Request) *http.Request {
	if r.Body == nil || r.Body == http.NoBody {
		return r
	}
	b := &body{ReadCloser: r.Body}
	r = r.WithContext(context.WithValue(r.Context(), bodyKey{}, b))
	r.Body = b
	return r
}

// isBodyBroken reports whether the client's body could not be read.
func isBodyBroken(r *http.Request) bool {
	b, ok := r.Context().Value(bodyKey{}).(*body)
	return ok && b.failed.Load()
}
