package bench

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/redisstore"
)

// inFlight is how many decisions are under way at once, each with a connection.
const inFlight = 64

// bareScript is the least that a limiter on Redis can do and be one: GET, some
// arithmetic (the instant at which the budget is whole again), SET with PX. It
// has no guard of any kind.
const bareScript = `
local now, step, burst, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local whole = tonumber(redis.call('GET', KEYS[1]) or now)
if whole < now then whole = now end
local next = whole + cost * step
if next - now > burst then
  return {0, 0, next - now - burst}
end
redis.call('SET', KEYS[1], next, 'PX', next - now)
return {1, math.floor((burst - (next - now)) / step), 0}
`

// Redis compares redisstore with the bare script through the same client, on
// the server at addr: what a decision costs the server's processor, and how
// many there are in a second.
func Redis(s Size, addr string) (Table, error) {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: addr, PoolSize: inFlight, MinIdleConns: inFlight, MaxRetries: -1, Protocol: 2, DisableIdentity: true})
	defer func() { _ = client.Close() }()
	version, err := info(ctx, client, "server", "redis_version")
	if err != nil {
		return Table{}, err
	}

	order := rand.New(rand.NewPCG(1, 2)).Perm(s.Keys)
	takes, err := bare(ctx, client, s.Keys, order)
	if err != nil {
		return Table{}, err
	}
	all := []contestant{onServer(ctx, client, "GET, arithmetic, SET PX", s.Operations, takes)}

	plain, recorded := bucket(), bucket()
	plain.Dedup.Off = true
	recorded.Dedup.MaxEntries = 1 << 16
	recorded.Dedup.MaxBytes = 1 << 24
	for _, c := range []struct {
		name, prefix string
		policy       stint.Policy
		ids          bool
		senders      int
	}{
		{"stint, dedup off", "off", plain, false, inFlight},
		{"stint, session records", "stint", bucket(), false, inFlight},
		{"stint, callers' records too", "ids", recorded, true, inFlight},
		{"stint, dedup off, sharing round trips", "off4", plain, false, redisstore.DefaultSenders},
		{"stint, session records, sharing", "on4", bucket(), false, redisstore.DefaultSenders},
		{"stint, callers' records, sharing", "ids4", recorded, true, redisstore.DefaultSenders},
	} {
		store, err := redisstore.Open(redisstore.Config{Addresses: []string{addr}, Prefix: c.prefix, Senders: c.senders, CommandTimeout: 10 * time.Second})
		if err != nil {
			return Table{}, err
		}
		defer func() { _ = store.Close() }()
		policy, err := stint.NewPolicy(c.policy)
		if err != nil {
			return Table{}, err
		}
		all = append(all, onServer(ctx, client, c.name, s.Operations, decisions(ctx, store, policy, s.Keys, order, c.ids)))
	}

	// One round that does not count: connections, scripts, keys.
	if _, err := measure(1, all); err != nil {
		return Table{}, err
	}
	medians, err := measure(s.Rounds, all)
	if err != nil {
		return Table{}, err
	}
	size, key, err := counterSize(ctx, client)
	if err != nil {
		return Table{}, err
	}

	t := Table{
		Title:   "Redis",
		Columns: []string{"", "Redis CPU, µs a decision", "against the bare script", "decisions a second"},
		Notes: []string{
			fmt.Sprintf("Redis %s on the same machine, %d in flight, each alone on a connection unless it shares one of %d, %d keys, %d decisions a round, medians of %d rounds, by turns. "+
				"Promised: 1.40 × with dedup off, 1.90 × with session records.", version, inFlight, redisstore.DefaultSenders, s.Keys, s.Operations, s.Rounds),
			fmt.Sprintf("A counter of one limit: MEMORY USAGE %d bytes, as `%s`. Promised: 136.", size, key),
		},
	}
	for i, c := range all {
		t.Rows = append(t.Rows, Row{c.name, []string{
			fmt.Sprintf("%.2f", medians[i]["cpu"]), ratio(medians[i]["cpu"], medians[0]["cpu"]),
			fmt.Sprintf("%.0f", medians[i]["per second"]),
		}})
	}
	return t, nil
}

// onServer is timed with what the server's processor spent on it.
func onServer(ctx context.Context, client *redis.Client, name string, operations int, f func(from, n int) error) contestant {
	c := timed(name, inFlight, operations, f)
	return contestant{name, func() (map[string]float64, error) {
		before, err := processorTime(ctx, client)
		if err != nil {
			return nil, err
		}
		figures, err := c.run()
		if err != nil {
			return nil, err
		}
		after, err := processorTime(ctx, client)
		figures["cpu"] = (after - before) * 1e6 / float64(operations)
		return figures, err
	}}
}

// bare returns takes by the bare script, of a budget like that of bucket.
func bare(ctx context.Context, client *redis.Client, keys int, order []int) (func(from, n int) error, error) {
	sha, err := client.ScriptLoad(ctx, bareScript).Result()
	if err != nil {
		return nil, err
	}
	names := make([]string, keys)
	for i := range names {
		names[i] = "bare:{" + Subject(i).String() + "}:bench"
	}
	return func(from, n int) error {
		for i := range n {
			key := names[order[(from+i)%len(order)]]
			reply, err := client.EvalSha(ctx, sha, []string{key}, time.Now().UnixMilli(), 1, 3_600_000, 1).Int64Slice()
			if err != nil {
				return err
			}
			if len(reply) != 3 || reply[0] != 1 {
				return errRefused
			}
		}
		return nil
	}, nil
}

func decisions(ctx context.Context, store stint.Store, p *stint.Policy, keys int, order []int, ids bool) func(from, n int) error {
	subjects := make([]stint.Pseudonym, keys)
	for i := range subjects {
		subjects[i] = Subject(i)
	}
	return func(from, n int) error {
		for i := range n {
			now := time.Now()
			g := stint.Group{Now: now.UnixMilli(), Deadline: now.Add(10 * time.Second)}
			if ids {
				g.ID = stint.NewEvaluationID("bench", strconv.FormatUint(rand.Uint64(), 36))
			}
			g.Append(stint.Charge{Policy: p, Subject: subjects[order[(from+i)%len(order)]], Cost: 1})
			v, err := store.Decide(ctx, g)
			if err != nil {
				return err
			}
			if !v.Allowed {
				return errRefused
			}
		}
		return nil
	}
}

// processorTime is what the server has used so far, in seconds.
func processorTime(ctx context.Context, client *redis.Client) (float64, error) {
	total := 0.0
	for _, field := range []string{"used_cpu_user", "used_cpu_sys"} {
		text, err := info(ctx, client, "cpu", field)
		if err != nil {
			return 0, err
		}
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return 0, err
		}
		total += seconds
	}
	return total, nil
}

func info(ctx context.Context, client *redis.Client, section, field string) (string, error) {
	text, err := client.Info(ctx, section).Result()
	if err != nil {
		return "", err
	}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && name == field {
			return value, nil
		}
	}
	return "", fmt.Errorf("INFO %s has no %s", section, field)
}

// counterSize is what one counter takes, all in all, and its key.
func counterSize(ctx context.Context, client *redis.Client) (size int64, key string, err error) {
	subject := Subject(0)
	found := client.Scan(ctx, 0, "stint:{"+subject.String()+"}:*", 1<<20).Iterator()
	if !found.Next(ctx) {
		return 0, "", fmt.Errorf("no counter was left behind (%w)", found.Err())
	}
	size, err = client.MemoryUsage(ctx, found.Val(), 0).Result()
	return size, found.Val(), err
}
