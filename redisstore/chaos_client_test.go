//go:build chaos

package redisstore

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stintlimit/stint/internal/chaos"
)

// ordersVariable names the file with the orders of a client process.
const ordersVariable = "STINT_CHAOS_ORDERS"

// orders is what a client process is to do, and how it reaches the servers.
type orders struct {
	Program  chaos.Program
	Reach    reach
	Mutation string // what its scripts do wrong; empty: nothing
	History  string // the file that it writes
}

// reach is how a client process reaches the servers: what a Config says of it.
type reach struct {
	Addresses []string
	Cluster   bool
	Sentinel  string // host:port of one that watches watchedName
}

// config is that of one program. Timeouts are short, so that an evaluation has
// time for its resend.
func (r reach) config(p chaos.Program) Config {
	c := Config{Addresses: r.Addresses, Cluster: r.Cluster, Prefix: p.Prefix, CommandTimeout: 120 * time.Millisecond, Senders: 4}
	if r.Sentinel != "" {
		c.Sentinel = &Sentinel{Master: watchedName, Addresses: []string{r.Sentinel}}
	}
	if p.Clock == chaos.CallerClock {
		c.Clock = CallerClock
	}
	return c
}

// TestChaosClient is the main function of a client process: the suite starts
// this binary again with orders. Without orders it shows that one does start,
// and writes a history even if there is nothing to reach.
func TestChaosClient(t *testing.T) {
	if path := os.Getenv(ordersVariable); path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var o orders
		if err := json.Unmarshal(text, &o); err != nil {
			t.Fatal(err)
		}
		o.carryOut(t)
		return
	}
	now := time.Now()
	c := startClient(t, t.TempDir(), orders{
		Program: chaos.Program{
			Process: 1, Prefix: "p", Clock: chaos.ServerClock, Callers: 2, Pause: 20 * time.Millisecond,
			Start: now.UnixMicro(), Until: now.Add(2 * time.Second).UnixMicro(),
		},
		Reach: reach{Addresses: []string{"127.0.0.1:1"}},
	})
	c.wait(t)
	h := readHistory(t, c.orders.History)
	for _, o := range h.Operations {
		if o.Answer == nil || o.Answer.Reason != "UNAVAILABLE_BEFORE_SEND" {
			t.Fatalf("got %+v", o.Answer)
		}
	}
	if len(h.Operations) == 0 {
		t.Fatal("no operations")
	}
}

func (o *orders) carryOut(t *testing.T) {
	misprogram(t, o.Mutation)
	f, err := os.OpenFile(o.History, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := Open(o.Reach.config(o.Program))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := o.Program.Run(context.Background(), s, chaos.NewRecorder(f)); err != nil {
		t.Fatal(err)
	}
}

// clientProcess is one client process. It is for one goroutine.
type clientProcess struct {
	orders orders
	cmd    *exec.Cmd
	output bytes.Buffer
	done   chan struct{}
	err    error // of the process, when it is done
	killed bool
}

func startClient(t testing.TB, dir string, o orders) *clientProcess {
	t.Helper()
	name := "process" + strconv.Itoa(o.Program.Process)
	o.History = filepath.Join(dir, name+".jsonl")
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name+".json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &clientProcess{orders: o, done: make(chan struct{})}
	c.cmd = exec.Command(self, "-test.run=^TestChaosClient$", "-test.count=1")
	c.cmd.Env = append(os.Environ(), ordersVariable+"="+path)
	c.cmd.Stdout, c.cmd.Stderr = &c.output, &c.output
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		c.err = c.cmd.Wait()
		close(c.done)
	}()
	t.Cleanup(c.kill)
	return c
}

// kill ends the process as a crash does, and waits until it is gone.
func (c *clientProcess) kill() {
	if !c.killed {
		c.killed = true
		_ = c.cmd.Process.Kill()
		<-c.done
	}
}

// wait waits for the process to end by itself; one that was killed has ended.
func (c *clientProcess) wait(t testing.TB) {
	t.Helper()
	if c.killed {
		return
	}
	patience := time.Until(time.UnixMicro(c.orders.Program.Until)) + c.orders.Program.Settle() + 20*time.Second
	select {
	case <-c.done:
		c.killed = true
		if c.err != nil {
			t.Fatalf("client process %d: %v\n%s", c.orders.Program.Process, c.err, c.output.Bytes())
		}
	case <-time.After(patience):
		c.kill()
		t.Fatalf("client process %d did not end\n%s", c.orders.Program.Process, c.output.Bytes())
	}
}
