//go:build chaos

package redisstore

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stintlimit/stint/internal/chaos"
	"github.com/stintlimit/stint/internal/redistest"
)

// scriptEdit is a change of one script's text.
type scriptEdit struct {
	script   *string
	old, new string
}

// mutation is a fault that a limiter might have, and the promise that the
// checker must find broken.
type mutation struct {
	name   string
	broken string
	wire   redistest.Odds
	far    int
	edits  []scriptEdit
}

var mutations = []mutation{
	{"a resend charges again", "what was not admitted was not spent", squall, 0, []scriptEdit{
		{&luaSession, "local record = session > 0 and values[#KEYS]", "local record = false"},
	}},
	{"a repeated id charges again", "an id is charged once", storm, 0, []scriptEdit{
		{&luaGroup, "    if done then\n", "    if false then\n"},
	}},
	{"what arrives after its deadline is charged", "one order explains every answer", storm, 0, []scriptEdit{
		{&luaSingle, "if server >= fence then", "if false then"},
		{&luaGroup, "if server >= g.fence then", "if false then"},
	}},
	{"a key has no time to live", "every key ends", drizzle, 0, []scriptEdit{
		{&luaSession, "call('SET', key, value, 'PX', lifetime + grace)", "call('SET', key, value)"},
	}},
	{"a time to live is too short", "what was admitted is kept", drizzle, 0, []scriptEdit{
		{&luaSession, "call('SET', key, value, 'PX', lifetime + grace)", "call('SET', key, value, 'PX', 40)"},
	}},
	{"a time to live ends with a period", "admissions stay inside the bound", drizzle, 0, []scriptEdit{
		{&luaSession, "call('SET', key, value, 'PX', lifetime + grace)", "call('SET', key, value, 'PX', math.min(lifetime, 100))"},
	}},
	{"a clock far behind a counter decides", "an unsafe clock decides nothing", drizzle, 10, []scriptEdit{
		{&luaSingle, "written - now > regression", "false"},
		{&luaGroup, "written - now > policy.regression", "false"},
	}},
	{"a clock far from the server's decides", "an unsafe clock decides nothing", drizzle, 60, []scriptEdit{
		{&luaSingle, "now > server + skew or now < server - skew", "false"},
		{&luaGroup, "now > server + skew or now < server - skew", "false"},
	}},
	{"a clock behind a counter is believed", "admissions stay inside the bound", drizzle, 0, []scriptEdit{
		{&luaSingle, "if written > now then effective = written end", ""},
		{&luaGroup, "local effective = written > now and written or now", "local effective = now"},
	}},
	{"a denial spends", "what was not admitted was not spent", drizzle, 0, []scriptEdit{
		{&luaSingle, "retry = wait(quota, period, refill, s, e, effective, cost) - now\n    elseif",
			"retry = wait(quota, period, refill, s, e, effective, cost) - now\n" +
				"      values[i], lifetimes = pack_bytes('>I7I7I7', effective, quota, e), lifetimes or {}\n" +
				"      lifetimes[i] = forget(period, refill, quota, e, effective) - now + safety\n    elseif"},
	}},
	{"a denied group spends what passes", "what was not admitted was not spent", drizzle, 0, []scriptEdit{
		{&luaGroup, "if not spends then return", "if not spends then\n" +
			"    for c = 1, #g do\n      if g.op == TAKE and plans[c] and plans[c].passes then spend(plans[c], now) end;\n    end\n    return"},
	}},
	{"a refund is not remembered", "what was admitted is kept", storm, 0, []scriptEdit{
		{&luaGroup, "  if r then\n    local entries, text = remember", "  if r and not refund then\n    local entries, text = remember"},
	}},
	{"a remainder is one too high", "one order explains every answer", drizzle, 0, []scriptEdit{
		{&luaSingle, "effective, 1, room, retry", "effective, 1, room + 1, retry"},
	}},
}

// misprogram changes the scripts of this process before it opens a store.
func misprogram(t testing.TB, name string) {
	t.Helper()
	if name == "" {
		return
	}
	i := slices.IndexFunc(mutations, func(m mutation) bool { return m.name == name })
	if i < 0 {
		t.Fatalf("no mutation is called %q", name)
	}
	for _, e := range mutations[i].edits {
		if strings.Count(*e.script, e.old) != 1 {
			t.Fatalf("%s: the script does not have this text once any more: %q", name, e.old)
		}
		*e.script = strings.Replace(*e.script, e.old, e.new, 1)
	}
}

// TestChaosFindsFaults: a checker that nothing turns red proves nothing. Each
// fault is found within a few short runs; nearly always in the first.
func TestChaosFindsFaults(t *testing.T) {
	const runs = 6
	for i, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			var report *chaos.Report
			for n := range runs {
				report = m.try(t, uint64(1000*(i+1)+n))
				if slices.Contains(report.Broken(), m.broken) {
					t.Logf("run %d: broken: %q", n+1, report.Broken())
					return
				}
			}
			t.Errorf("%d runs did not find it broken: %q. The last:\n%v", runs, m.broken, report)
		})
	}
}

// try runs clients with the mutated scripts in the weather that brings the
// fault out.
func (m *mutation) try(t *testing.T, seed uint64) *chaos.Report {
	r := &chaosRun{
		T: t, system: oneServer(t, seed, false), seed: seed, length: 3 * time.Second, pairs: 2, wire: m.wire, mutation: m.name,
		load: chaos.Program{Callers: 6, Pause: 20 * time.Millisecond, Repeat: time.Second, Far: m.far},
	}
	defer r.forget()
	return r.carryOut(nil)
}
