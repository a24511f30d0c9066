package redisstore

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stintlimit/stint"
)

// minimumRecordTTL is the least that a session record lives: longer than any
// delay after which what its sender sent may still arrive.
const minimumRecordTTL = time.Minute

// sender sends one batch at a time over one connection of its own. It is for
// one goroutine.
type sender struct {
	client  *redis.Client
	wire    *wire
	encoder *encoder
	clock   *serverClock
	timeout time.Duration

	prefix, id string // of its session record
	clustered  bool   // it has one in each slot
	sequence   int64  // of the newest batch

	// doubt holds the records whose batches may still run: the next batch
	// writes such a record whatever it answers.
	doubt map[string]bool
}

func newSender(c Config, e *encoder, clock *serverClock, w *wire) *sender {
	// 32 bytes, so that the key is longer than the 44 bytes below which the
	// server's Lua reuses an argument's memory for the next command's: a
	// counter's state would then take the room of this key.
	id := make([]byte, 32)
	_, _ = rand.Read(id) // never fails
	s := &sender{
		wire: w, encoder: e, clock: clock, timeout: c.CommandTimeout, doubt: map[string]bool{},
		prefix: c.Prefix, id: base64.RawURLEncoding.EncodeToString(id), clustered: c.Cluster,
	}
	s.client = newClient(c, w, clock, 1)
	return s
}

// failedDials is how many dials in a row fail before the client, for a second,
// refuses to try: it calls this the size of its pool. A server that is back is
// then noticed by the next evaluation, unless the outage was a busy one.
const failedDials = 4096

// newClient returns a client that holds so many connections, 0 for as many as
// are asked for at once, never repeats a command, and sends nothing that the
// limiter's account may not.
func newClient(c Config, w *wire, clock *serverClock, connections int) *redis.Client {
	return redis.NewClient(&redis.Options{
		Username: c.Username, Password: c.Password,
		Dialer: w.dial, DialTimeout: c.CommandTimeout, DialerRetries: 1,
		ReadTimeout: c.CommandTimeout, WriteTimeout: c.CommandTimeout,
		ContextTimeoutEnabled: true, MaxRetries: -1,
		PoolSize: failedDials, MaxActiveConns: connections, PoolTimeout: c.CommandTimeout,
		Protocol: 2, DisableIdentity: true,
		OnConnect: func(ctx context.Context, cn *redis.Conn) error {
			if err := greet(ctx, cn, clock); err != nil {
				return err
			}
			w.greeted()
			return nil
		},
	})
}

// greet refuses a server that is too old, and learns its clock.
func greet(ctx context.Context, cn *redis.Conn, clock *serverClock) error {
	about, err := cn.Do(ctx, "hello").Slice()
	if err != nil {
		return fmt.Errorf("hello: %w", err)
	}
	for i := 0; i+1 < len(about); i += 2 {
		if version, ok := about[i+1].(string); about[i] == "version" && ok && tooOld(version) {
			return fmt.Errorf("the server is of version %s: 7.0 or newer is needed", version)
		}
	}
	sent := time.Now()
	at, err := cn.Time(ctx).Result()
	if err != nil {
		return fmt.Errorf("time: %w", err)
	}
	clock.sample(at.UnixMilli(), sent, time.Now())
	return nil
}

func tooOld(version string) bool {
	major, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(major)
	return err == nil && n < 7
}

// execute decides groups, which share one script, and returns an answer for
// each. latest is when the last of their callers stops listening.
func (s *sender) execute(groups []*stint.Group, latest time.Time, by manner) []answer {
	answers := s.executeOnce(groups, latest, by)
	again := expiredEarly(groups, answers)
	if len(again) == 0 {
		return answers
	}
	// The server's clock has stepped ahead of what was known of it. The
	// refusal told the new time, and proves that nothing was spent.
	repeated := make([]*stint.Group, len(again))
	for n, i := range again {
		repeated[n] = groups[i]
	}
	for n, a := range s.executeOnce(repeated, latest, by) {
		answers[again[n]] = a
	}
	return answers
}

// expiredEarly lists the groups that the script found late although their
// deadlines are ahead.
func expiredEarly(groups []*stint.Group, answers []answer) (early []int) {
	for i, a := range answers {
		if a.expired && time.Until(groups[i].Deadline) > 0 {
			early = append(early, i)
		}
	}
	return early
}

// executeOnce sends one batch, and sends the same once more if the reply was
// lost and resending is harmless. The class of a result is the worst of the
// attempts: after a lost reply only a decision resolves it.
func (s *sender) executeOnce(groups []*stint.Group, latest time.Time, by manner) []answer {
	b, err := s.prepare(groups, latest, by)
	if err != nil {
		return all(groups, err)
	}
	answers, first := s.attempt(b, latest)
	if first == nil {
		return answers
	}
	if first.Reason == stint.OutcomeUnknown && b.record != "" {
		s.doubt[b.record] = true
	}
	if !first.lost || b.record == "" {
		return all(groups, first.Error)
	}
	b.recordAlways()
	answers, second := s.attempt(b, latest)
	if second != nil {
		return all(groups, unresolved(first, second.Error))
	}
	for i, a := range answers {
		if a.err != nil {
			answers[i] = answer{err: unresolved(first, a.err)}
		}
	}
	return answers
}

// all gives every group the same error.
func all(groups []*stint.Group, err error) []answer {
	answers := make([]answer, len(groups))
	for i := range answers {
		answers[i].err = err
	}
	return answers
}

// unresolved is the class of two attempts of which the first lost its reply.
func unresolved(first *failure, second error) error {
	return &stint.Error{Reason: stint.OutcomeUnknown, Cause: fmt.Errorf("%w; sent again: %w", first.Cause, second)}
}

// prepare encodes a batch under the next sequence number.
func (s *sender) prepare(groups []*stint.Group, latest time.Time, by manner) (*batch, error) {
	// A new connection may lead to another server, with another clock.
	if !s.wire.connected() {
		if err := s.connect(latest); err != nil {
			return nil, err
		}
	}
	fences := make([]int64, len(groups))
	for i, g := range groups {
		fences[i] = s.clock.fence(g.Deadline)
	}
	session, ttl := "", int64(0)
	for _, g := range groups {
		if sessioned(g) && !by.alone {
			session = s.sessionKey(g)
			ttl = max(minimumRecordTTL, 2*time.Until(latest)+minimumRecordTTL).Milliseconds()
		}
	}
	s.sequence++
	b := s.encoder.encode(groups, fences, session, s.sequence, ttl)
	b.asking = by.asking
	if s.doubt[session] {
		b.recordAlways()
	}
	return b, nil
}

// sessionKey is the key of the sender's record; in a Cluster, of that in the
// slot of g.
func (s *sender) sessionKey(g *stint.Group) string {
	if !s.clustered {
		return s.prefix + ":session:" + s.id
	}
	return s.prefix + ":{" + slotTags()[slotOf(s.encoder.counterKey(g.Charge(0)))] + "}:session:" + s.id
}

// connect makes a connection, whose handshake learns the server's clock.
func (s *sender) connect(latest time.Time) error {
	ctx, cancel := s.context(latest)
	defer cancel()
	s.wire.begin()
	if err := s.client.Time(ctx).Err(); err != nil {
		return &stint.Error{Reason: stint.BeforeSend, Cause: err}
	}
	return nil
}

// context bounds one attempt.
func (s *sender) context(latest time.Time) (context.Context, context.CancelFunc) {
	deadline := time.Now().Add(s.timeout)
	if latest.Before(deadline) {
		deadline = latest
	}
	return context.WithDeadline(context.Background(), deadline)
}

// attempt sends a batch once. Only a server that does not know the script gets
// it loaded, and the batch a second time: it has not run the first.
func (s *sender) attempt(b *batch, latest time.Time) ([]answer, *failure) {
	ctx, cancel := s.context(latest)
	defer cancel()
	reply, failure := s.send(ctx, b)
	if failure != nil && isNoScript(failure.Cause) {
		if err := s.client.ScriptLoad(ctx, b.script.source).Err(); err != nil {
			return nil, proves(stint.NoMutation, fmt.Errorf("loading the script: %w", err))
		}
		reply, failure = s.send(ctx, b)
	}
	if failure != nil {
		return nil, failure
	}
	return s.receive(b, reply)
}

// send evaluates a batch's script, and places a failure.
func (s *sender) send(ctx context.Context, b *batch) (string, *failure) {
	if err := ctx.Err(); err != nil {
		return "", proves(stint.BeforeSend, err)
	}
	args := make([]any, 0, 4+len(b.keys))
	args = append(args, "evalsha", b.script.sha, len(b.keys))
	for _, k := range b.keys {
		args = append(args, k)
	}
	args = append(args, b.blob)
	s.wire.begin()
	sent := time.Now()
	reply, err := s.ask(ctx, b.asking, args)
	if err != nil {
		return "", classify(err, s.wire.now())
	}
	if _, server, _, err := decodeHead(reply); err == nil {
		s.clock.sample(server, sent, time.Now())
	}
	return reply, nil
}

// ask sends one command, and before it, if the slot is on its way here, that
// this is known.
func (s *sender) ask(ctx context.Context, asking bool, args []any) (string, error) {
	if !asking {
		return s.client.Do(ctx, args...).Text()
	}
	pipe := s.client.Pipeline()
	pipe.Do(ctx, "asking")
	reply := pipe.Do(ctx, args...)
	_, _ = pipe.Exec(ctx)
	return reply.Text()
}

// receive reads the answers out of a reply.
func (s *sender) receive(b *batch, reply string) ([]answer, *failure) {
	status, _, body, err := decodeHead(reply)
	if err != nil {
		return nil, lostReply(err)
	}
	if status == batchStale {
		return nil, proves(stint.NoMutation, errors.New("the server remembers a newer batch of this sender"))
	}
	answers, err := decodeAnswers(b.groups, body)
	if err != nil {
		return nil, lostReply(err)
	}
	if b.recordsAlways() {
		delete(s.doubt, b.record)
	}
	return answers, nil
}
