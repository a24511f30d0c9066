package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/stintlimit/stint/internal/redistest"
)

func TestMain(m *testing.M) { testscript.Main(m, map[string]func(){"stint": main}) }

// TestScripts runs the binary as its user meets it.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":     exits,
			"freeport":  freePort,
			"get":       get,
			"send":      send,
			"poll":      poll,
			"upstream":  startUpstream,
			"begin":     begin,
			"finish":    finish,
			"terminate": terminate,
		},
	})
}

const patience = 15 * time.Second

// exits CODE COMMAND... runs a command and expects that exit code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if err != nil {
		got = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if got != args[0] {
		ts.Fatalf("%v: exit code %s, want %s", args[1:], got, args[0])
	}
}

// freeport NAME... sets variables to host:port of ports that nobody uses, and
// NAME_PORT to the port alone.
func freePort(ts *testscript.TestScript, _ bool, names []string) {
	for _, name := range names {
		addr, err := redistest.FreeAddress()
		ts.Check(err)
		_, port, err := net.SplitHostPort(addr)
		ts.Check(err)
		ts.Setenv(name, addr)
		ts.Setenv(name+"_PORT", port)
	}
}

// get URL STATUS [HEADER...] sends one request, expects a status and headers,
// and leaves the whole response to stdout.
func get(ts *testscript.TestScript, _ bool, args []string) {
	req, err := http.NewRequest(http.MethodGet, args[0], nil)
	ts.Check(err)
	expect(ts, req, args[1], args[2:])
}

// send METHOD URL STATUS [NAME=VALUE...] sends one request with headers, and
// expects a status.
func send(ts *testscript.TestScript, _ bool, args []string) {
	req, err := http.NewRequest(args[0], args[1], nil)
	ts.Check(err)
	for _, header := range args[3:] {
		name, value, _ := strings.Cut(header, "=")
		req.Header.Set(name, value)
	}
	expect(ts, req, args[2], nil)
}

func expect(ts *testscript.TestScript, req *http.Request, status string, headers []string) {
	res, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	ts.Check(err)
	var lines []string
	for name, values := range res.Header {
		for _, v := range values {
			lines = append(lines, name+": "+v)
		}
	}
	sort.Strings(lines)
	fmt.Fprintf(ts.Stdout(), "%d\n%s\n\n%s", res.StatusCode, strings.Join(lines, "\n"), body)
	if strconv.Itoa(res.StatusCode) != status {
		ts.Fatalf("%s: status %d, want %s\n%s", req.URL, res.StatusCode, status, body)
	}
	for _, name := range headers {
		if len(res.Header.Values(name)) != 1 {
			ts.Fatalf("%s: %d lines of %s", req.URL, len(res.Header.Values(name)), name)
		}
	}
}

// poll URL STATUS asks until the status is that one, or until nobody answers
// if it is "gone".
func poll(ts *testscript.TestScript, _ bool, args []string) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-tick.C {
		got := "gone"
		if res, err := client.Get(args[0]); err == nil {
			res.Body.Close()
			got = strconv.Itoa(res.StatusCode)
		}
		if got == args[1] {
			return
		}
	}
	ts.Fatalf("%s does not become %s", args[0], args[1])
}

// held is an upstream that holds requests of one script back.
type held struct {
	arrived, release, answered chan string
}

var upstreams sync.Map // by the script's directory

// upstream starts a server that answers /slow when the script says so, and
// sets UPSTREAM.
func startUpstream(ts *testscript.TestScript, _ bool, _ []string) {
	h := &held{make(chan string, 1), make(chan string), make(chan string, 1)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			h.arrived <- r.URL.Path
			select {
			case <-h.release:
			case <-r.Context().Done():
			}
		}
		fmt.Fprintf(w, "upstream saw %s", r.URL.Path)
	}))
	ts.Defer(func() {
		server.CloseClientConnections()
		server.Close()
	})
	ts.Setenv("UPSTREAM", server.URL)
	upstreams.Store(ts.Getenv("WORK"), h)
}

func upstreamOf(ts *testscript.TestScript) *held {
	h, ok := upstreams.Load(ts.Getenv("WORK"))
	if !ok {
		ts.Fatalf("no upstream")
	}
	return h.(*held)
}

// begin URL sends a request and waits until the upstream holds it.
func begin(ts *testscript.TestScript, _ bool, args []string) {
	h := upstreamOf(ts)
	go func() {
		res, err := http.Get(args[0])
		if err != nil {
			h.answered <- err.Error()
			return
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		h.answered <- strconv.Itoa(res.StatusCode) + " " + string(body)
	}()
	select {
	case <-h.arrived:
	case <-time.After(patience):
		ts.Fatalf("the request does not reach the upstream")
	}
}

// finish ANSWER lets the upstream answer, and expects that "status body".
func finish(ts *testscript.TestScript, _ bool, args []string) {
	h := upstreamOf(ts)
	close(h.release)
	select {
	case got := <-h.answered:
		if got != args[0] {
			ts.Fatalf("answered %q, want %q", got, args[0])
		}
	case <-time.After(patience):
		ts.Fatalf("not answered")
	}
}

// terminate sends SIGTERM to everything that runs in the background.
func terminate(ts *testscript.TestScript, _ bool, _ []string) {
	for _, cmd := range ts.BackgroundCmds() {
		ts.Check(cmd.Process.Signal(syscall.SIGTERM))
	}
}
