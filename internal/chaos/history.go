package chaos

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/stintlimit/stint"
)

// The clocks that a call may be decided by.
const (
	ServerClock = "server"
	CallerClock = "caller"
)

// Charge is one counter of a call and what to spend on it.
type Charge struct {
	Counter string `json:"counter"` // its key on the server
	Policy  string `json:"policy"`
	Cost    int64  `json:"cost"`
}

// Call is the invocation of an operation, written before it is made.
type Call struct {
	Process  int      `json:"process"`
	Number   int      `json:"number"` // within the process
	Peek     bool     `json:"peek,omitempty"`
	Refund   bool     `json:"refund,omitempty"` // of what was spent under ID
	ID       string   `json:"id,omitempty"`     // the evaluation id; empty: none
	Clock    string   `json:"clock"`
	Now      int64    `json:"now"`      // the caller's clock, epoch ms
	Called   int64    `json:"called"`   // the machine's clock, epoch µs
	Deadline int64    `json:"deadline"` // the machine's clock, epoch µs
	Charges  []Charge `json:"charges"`
}

// Decision is the answer to one charge.
type Decision struct {
	Outcome   string `json:"outcome"`
	At        int64  `json:"at"` // the effective now, epoch ms
	Remaining int64  `json:"remaining"`
	Replayed  bool   `json:"replayed,omitempty"`
}

// Answer is the outcome of a call: decisions, or the reason why there are none.
type Answer struct {
	Process   int          `json:"process"`
	Number    int          `json:"number"`
	Returned  int64        `json:"returned"` // the machine's clock, epoch µs
	Allowed   bool         `json:"allowed"`
	Reason    stint.Reason `json:"reason,omitempty"`
	Cause     string       `json:"cause,omitempty"`
	Decisions []Decision   `json:"decisions,omitempty"`
}

// Loss says that the servers lost data at some instant of an interval.
type Loss struct {
	What string `json:"what"`
	From int64  `json:"from"` // epoch µs
	To   int64  `json:"to"`   // epoch µs
}

// Audit is what a server held of a counter while no call on it was under way.
type Audit struct {
	Counter   string `json:"counter"`
	Policy    string `json:"policy"`
	Called    int64  `json:"called"`    // epoch µs
	Returned  int64  `json:"returned"`  // epoch µs
	Remaining int64  `json:"remaining"` // as a peek of cost 0 says
	TTL       int64  `json:"ttl"`       // as PTTL says: ms, -1 for ever, -2 no key
}

// Fault is something that was done to the servers or to the callers. The
// checker does not use it: it is for the reader of a history.
type Fault struct {
	At   int64  `json:"at"` // epoch µs
	What string `json:"what"`
}

// event is one line of a history: exactly one of its fields is set.
type event struct {
	Call   *Call   `json:"call,omitempty"`
	Answer *Answer `json:"answer,omitempty"`
	Loss   *Loss   `json:"loss,omitempty"`
	Audit  *Audit  `json:"audit,omitempty"`
	Fault  *Fault  `json:"fault,omitempty"`
}

// Recorder writes a history, a line an event, each at once, so that a process
// that is killed leaves everything it did. It is safe for concurrent use.
type Recorder struct {
	mu  sync.Mutex
	w   io.Writer
	err error
}

// NewRecorder returns a recorder that writes to w.
func NewRecorder(w io.Writer) *Recorder { return &Recorder{w: w} }

// Call records an invocation.
func (r *Recorder) Call(c Call) { r.write(event{Call: &c}) }

// Answer records an outcome.
func (r *Recorder) Answer(a Answer) { r.write(event{Answer: &a}) }

// Loss records a loss of data.
func (r *Recorder) Loss(l Loss) { r.write(event{Loss: &l}) }

// Audit records what a server held.
func (r *Recorder) Audit(a Audit) { r.write(event{Audit: &a}) }

// Fault records what was done.
func (r *Recorder) Fault(f Fault) { r.write(event{Fault: &f}) }

// Err returns the first error of writing: a history with a gap proves nothing.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

func (r *Recorder) write(e event) {
	line, err := json.Marshal(e)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && r.err == nil {
		_, err = r.w.Write(append(line, '\n'))
	}
	r.err = cmp.Or(r.err, err)
}

// Operation is a call and its answer; nil if its process did not live to see one.
type Operation struct {
	Call
	Answer *Answer
}

// History is all that is known of a run.
type History struct {
	Operations []*Operation
	Losses     []Loss
	Audits     []Audit
	Faults     []Fault
}

// Read reads histories, such as one a process, and joins them. The last line
// of each may be cut short: its process was killed while it wrote.
func Read(sources ...io.Reader) (*History, error) {
	h := &History{}
	open := map[[2]int]*Operation{}
	for _, source := range sources {
		if err := h.read(source, open); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(h.Operations, func(a, b *Operation) int {
		return cmp.Or(cmp.Compare(a.Called, b.Called), cmp.Compare(a.Process, b.Process), cmp.Compare(a.Number, b.Number))
	})
	slices.SortFunc(h.Losses, func(a, b Loss) int { return cmp.Compare(a.From, b.From) })
	return h, nil
}

func (h *History) read(source io.Reader, open map[[2]int]*Operation) error {
	lines := bufio.NewReader(source)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if err := h.add(e, open); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
}

func (h *History) add(e event, open map[[2]int]*Operation) error {
	switch {
	case e.Call != nil:
		o := &Operation{Call: *e.Call}
		open[[2]int{o.Process, o.Number}] = o
		h.Operations = append(h.Operations, o)
	case e.Answer != nil:
		o := open[[2]int{e.Answer.Process, e.Answer.Number}]
		if o == nil || o.Answer != nil {
			return fmt.Errorf("an answer to call %d of process %d, which is not open", e.Answer.Number, e.Answer.Process)
		}
		o.Answer = e.Answer
	case e.Loss != nil:
		h.Losses = append(h.Losses, *e.Loss)
	case e.Audit != nil:
		h.Audits = append(h.Audits, *e.Audit)
	case e.Fault != nil:
		h.Faults = append(h.Faults, *e.Fault)
	default:
		return errors.New("no event that this program knows")
	}
	return nil
}

// end is when nothing of the operation can run any more, epoch µs: what was
// sent refuses itself at the deadline.
func (o *Operation) end() int64 {
	end := o.Deadline + deadlineSlack
	if o.Answer != nil {
		end = max(end, o.Answer.Returned)
	}
	return end
}

// deadlineSlack, µs, covers the rounding of deadlines to the server's whole ms.
const deadlineSlack = 5_000

// takes reports whether the operation is there to spend.
func (o *Operation) takes() bool { return !o.Peek && !o.Refund }

// admitted reports whether the operation was told that it spent.
func (o *Operation) admitted() bool {
	return o.takes() && o.Answer != nil && o.Answer.Allowed
}

// denied reports whether the operation was told that it was decided and spent
// nothing.
func (o *Operation) denied() bool {
	return o.takes() && o.Answer != nil && o.Answer.Reason == "" && !o.Answer.Allowed
}

// replayed reports whether the answer is an earlier attempt's.
func (o *Operation) replayed() bool {
	return o.Answer != nil && len(o.Answer.Decisions) > 0 && o.Answer.Decisions[0].Replayed
}

// refunded reports whether the operation was told that it gave back.
func (o *Operation) refunded() bool { return o.Refund && o.Answer != nil && o.Answer.Reason == "" }

// unknown reports whether the caller cannot tell if something was spent, or
// given back.
func (o *Operation) unknown() bool {
	return !o.Peek && (o.Answer == nil || o.Answer.Reason.Kind() == stint.Indeterminate && o.Answer.Reason != "")
}
