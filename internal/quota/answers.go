package quota

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/stintlimit/stint"
)

// DefaultRetryAfter is what clients are asked to wait when no decision could
// be made.
const DefaultRetryAfter = time.Second

// Problem types of draft-ietf-httpapi-ratelimit-headers-11.
const (
	TypeQuotaExceeded   = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	TypeReducedCapacity = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
)

// Problem is a problem detail, RFC 9457.
type Problem struct {
	Type     string   `json:"type"`
	Title    string   `json:"title"`
	Status   int      `json:"status"`
	Detail   string   `json:"detail,omitempty"`
	Violated []string `json:"violated-policies,omitempty"` // names of limits, as in RateLimit
}

// Answers writes responses for the policies of one limiter. It is immutable
// and safe for concurrent use.
type Answers struct {
	forms      map[*stint.Policy]form
	retryAfter string
}

// New returns answers for a limiter's policies. RetryAfter is what clients are
// asked to wait when no decision could be made, rounded up to whole seconds;
// 0: 1s.
func New(l *stint.Limiter, retryAfter time.Duration) (*Answers, error) {
	if l == nil {
		return nil, errors.New("quota: the limiter is nil")
	}
	if retryAfter < 0 {
		return nil, fmt.Errorf("quota: a Retry-After of %v lies in the past", retryAfter)
	}
	if retryAfter == 0 {
		retryAfter = DefaultRetryAfter
	}
	a := &Answers{forms: map[*stint.Policy]form{}, retryAfter: strconv.FormatInt(RetrySeconds(retryAfter), 10)}
	for _, id := range l.Policies() {
		p := l.Policy(id)
		a.forms[p] = newForm(p)
	}
	return a, nil
}

// Denied answers 429 to a verdict that does not allow.
func (a *Answers) Denied(w http.ResponseWriter, policies []*stint.Policy, v *stint.Verdict) {
	h := w.Header()
	a.Fields(policies, v).AddTo(h)
	binding := v.Decision(v.Binding)
	h.Set("Retry-After", strconv.FormatInt(RetrySeconds(binding.RetryAfter), 10))
	write(w, Problem{
		Type:     TypeQuotaExceeded,
		Title:    "Request cannot be satisfied as assigned quota has been exceeded",
		Status:   http.StatusTooManyRequests,
		Violated: Violated(policies, v),
	})
}

// Violated returns the names of the limits that refuse.
func Violated(policies []*stint.Policy, v *stint.Verdict) []string {
	var names []string
	for i, p := range policies {
		d := v.Decision(i)
		if d.Outcome != stint.Denied {
			continue
		}
		for limit := range d.Limits() {
			if name := p.LimitName(limit); d.Refuses(limit) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// Failed answers an evaluation without a decision: 503 if the limiter cannot
// decide for now, and 409 or 500 if repeating would not help. It gives no
// figures, because there are none.
func (a *Answers) Failed(w http.ResponseWriter, err error) {
	p := ProblemOf(err)
	if p.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", a.retryAfter)
	}
	write(w, p)
}

// ProblemOf says what an evaluation without a decision means to a client. An
// unknown error counts as [stint.OutcomeUnknown].
func ProblemOf(err error) Problem {
	reason := stint.ReasonOf(err)
	switch {
	case reason == stint.EvaluationMismatch:
		return Problem{
			Type: "about:blank", Title: "Conflict", Status: http.StatusConflict,
			Detail: "The evaluation id was used before for another evaluation.",
		}
	case reason.Kind() == stint.Incompatible:
		return Problem{
			Type: "about:blank", Title: "Internal Server Error", Status: http.StatusInternalServerError,
			Detail: "The rate limiter is misconfigured. Nothing was spent.",
		}
	case reason.Kind() == stint.Unavailable:
		return reducedCapacity("The rate limiter cannot decide for now. Nothing was spent.")
	}
	return reducedCapacity("The rate limiter cannot decide for now. Whether anything was spent is unknown.")
}

func reducedCapacity(detail string) Problem {
	return Problem{
		Type:   TypeReducedCapacity,
		Title:  "Request cannot be satisfied due to temporary server capacity constraints",
		Status: http.StatusServiceUnavailable,
		Detail: detail,
	}
}

// BadRequest answers 400 to a request that does not say who it is from, or what
// for. The detail is for people and quotes nothing that the client sent.
func BadRequest(w http.ResponseWriter, detail string) {
	write(w, Problem{Type: "about:blank", Title: "Bad Request", Status: http.StatusBadRequest, Detail: detail})
}

// write sends a refusal, which no cache may keep.
func write(w http.ResponseWriter, p Problem) {
	body, _ := json.Marshal(p) // strings and an integer always encode
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(body)+1))
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n'))
}
