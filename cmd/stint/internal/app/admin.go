package app

import (
	"fmt"
	"net/http"
	"strings"
)

// adminHandler answers operators and their machines. It is not for clients.
func adminHandler(r *readiness, metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { probe(w, nil) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { probe(w, r.obstacles()) })
	mux.Handle("GET /metrics", metrics)
	return mux
}

func probe(w http.ResponseWriter, obstacles []string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	if len(obstacles) > 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintln(w, strings.Join(obstacles, "\n"))
		return
	}
	fmt.Fprintln(w, "ok")
}
