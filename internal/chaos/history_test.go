package chaos

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stintlimit/stint"
)

func TestAHistoryIsReadAsItWasWritten(t *testing.T) {
	h := tell(t)
	h.call(0, Solo, 10).named("a").allowed(140)
	h.call(20, Fixed, 1).fails(stint.OutcomeUnknown)
	h.call(40, Fixed, 1).Answer = nil
	h.loss(50, 60)
	h.audit(100, Solo, 150, -2)
	h.Faults = append(h.Faults, Fault{At: 1, What: "told"})
	var b bytes.Buffer
	r := NewRecorder(&b)
	for _, o := range h.Operations {
		r.Call(o.Call)
		if o.Answer != nil {
			r.Answer(*o.Answer)
		}
	}
	r.Loss(h.Losses[0])
	r.Audit(h.Audits[0])
	r.Fault(h.Faults[0])
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	cut := strings.NewReader(b.String() + `{"call":{"proc`) // its process was killed here
	got, err := Read(cut, strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&h.History, got, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

func TestABadHistoryIsNotRead(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON":                 "what\n",
		"no event":                "{}\n",
		"an answer to nothing":    `{"answer":{"process":1,"number":1}}` + "\n",
		"an answer that is twice": `{"call":{"process":1,"number":1}}` + "\n" + strings.Repeat(`{"answer":{"process":1,"number":1}}`+"\n", 2),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Read(strings.NewReader(text)); err == nil {
				t.Error("it was read")
			}
		})
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestAHistoryWithAGapIsAnError(t *testing.T) {
	r := NewRecorder(fullDisk{})
	r.Fault(Fault{})
	if r.Err() == nil {
		t.Error("nobody noticed")
	}
}
