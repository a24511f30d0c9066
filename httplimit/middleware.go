package httplimit

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/internal/edge"
	"github.com/stintlimit/stint/internal/quota"
	"github.com/stintlimit/stint/subject"
)

// An Option changes the behaviour of a [Middleware].
type Option func(*options)

type options struct {
	logger         *slog.Logger
	interval       time.Duration
	onUnidentified func(policy string, shadow bool)
}

// WithLogger logs evaluations that could not be decided, at most one line an
// interval of 10s, which says how many went unlogged. Without it the
// middleware logs nothing; the limiter's observer sees every error.
func WithLogger(l *slog.Logger) Option { return func(o *options) { o.logger = l } }

// WithLogInterval replaces the interval of [WithLogger]; it must be positive.
func WithLogInterval(d time.Duration) Option { return func(o *options) { o.interval = d } }

// WithUnidentified calls f for each charge whose subject could not be
// identified: the request is refused or, if the policy is a shadow, passes
// uncharged. It must be fast and safe for concurrent use.
func WithUnidentified(f func(policy string, shadow bool)) Option {
	return func(o *options) { o.onUnidentified = f }
}

// Middleware limits handlers. It is safe for concurrent use, and one may limit
// several handlers, which then share budgets.
type Middleware struct {
	bridge  *edge.Bridge
	answers *quota.Answers
	log     *intervalLog
}

// New returns a middleware over limiter, with pseudonyms made from keys. Both
// are required; subject.EphemeralKeyRing makes keys for a store that lives in
// this process. The error names every problem of c.
func New(limiter *stint.Limiter, keys *subject.KeyRing, c Config, opts ...Option) (*Middleware, error) {
	if limiter == nil {
		return nil, errors.New("httplimit: the limiter is nil: stint.New makes one")
	}
	o := options{logger: slog.New(slog.DiscardHandler), interval: 10 * time.Second}
	for _, option := range opts {
		option(&o)
	}
	var problems []error
	policies := limiter.Policies()
	e := c.bridge(policies)
	e.Limiter, e.Keys, e.OnUnidentified = limiter, keys, o.onUnidentified
	if len(e.Default.Charges) == 0 && len(c.Routes) == 0 {
		problems = append(problems, fmt.Errorf("nothing is charged: the limiter has %d policies, so say which in Charges or Routes", len(policies)))
	}
	bridge, err := edge.New(e)
	problems = append(problems, inConfig(err))
	answers, err := quota.New(limiter, c.RetryAfter)
	problems = append(problems, err)
	if o.logger == nil || o.interval <= 0 {
		problems = append(problems, errors.New("a logger must not be nil, and its interval is positive"))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("httplimit: %w", err)
	}
	return &Middleware{bridge: bridge, answers: answers, log: newIntervalLog(o.logger, o.interval)}, nil
}

// Handler returns next behind the limit.
func (m *Middleware) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if m.admit(w, r) {
			next.ServeHTTP(w, r)
		}
	})
}

// admit decides on a request, and answers it unless it may go on.
func (m *Middleware) admit(w http.ResponseWriter, r *http.Request) bool {
	result, err := m.bridge.Decide(r)
	switch {
	case err != nil:
		limitBody(w, r)
		m.failed(w, r, result.Route, err)
	case !result.Allowed:
		limitBody(w, r)
		m.answers.Denied(w, result.Policies, &result.Verdict)
	default:
		m.answers.Fields(result.Policies, &result.Verdict).AddTo(w.Header())
		return true
	}
	return false
}

// bodyGrace is how long a client that is refused may still send its body.
const bodyGrace = time.Second

// limitBody bounds how long a refusal waits for the request's body: net/http
// reads what is left of it before it answers, to keep the connection, so that
// who withholds it would hold the answer, the connection and a shutdown. The
// next request on the connection gets a deadline of its own. A writer without
// deadlines has no connection to hold.
func limitBody(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyGrace))
	}
}

func (m *Middleware) failed(w http.ResponseWriter, r *http.Request, route string, err error) {
	if unidentified, ok := errors.AsType[*edge.UnidentifiedError](err); ok {
		quota.BadRequest(w, detail(unidentified.Subject))
		return
	}
	if errors.Is(err, edge.ErrTarget) {
		quota.BadRequest(w, "The request's target is not a path.")
		return
	}
	m.log.failed(r.Context(), route, err)
	m.answers.Failed(w, err)
}

func detail(k subject.Kind) string {
	switch k {
	case subject.ClientIP:
		return "The client's address cannot be told."
	case subject.APIKey:
		return "The request carries no usable API key."
	}
	return "The request carries no authenticated principal."
}
