package redisstore

import (
	"testing"
	"time"

	"github.com/stintlimit/stint"
)

// A reply is trusted as a whole or not at all: whatever arrives, decoding
// neither fails hard nor makes an answer that contradicts itself.
func FuzzDecode(f *testing.F) {
	shadow := stint.Policy{ID: "s", Mode: stint.Shadow, Limits: []stint.Limit{stint.FixedWindow{Limit: 10, Window: time.Minute}}}
	single, several := anyPolicies(f)
	groups := []*stint.Group{new(stint.Group), new(stint.Group)}
	*groups[0] = group(stint.Take, stint.EvaluationID{}, epoch, stint.Charge{Policy: single[0], Subject: subject("a"), Cost: 1})
	*groups[1] = group(stint.Take, stint.EvaluationID{}, epoch, stint.Charge{Policy: several[3], Subject: subject("a"), Cost: 1},
		stint.Charge{Policy: policy(f, shadow), Subject: subject("a"), Cost: 1})
	f.Add("")
	f.Add("\x00\x00\x01\x8f\x00\x00\x00\x00\x02\x03")
	f.Add("\x01\x00\x01\x8f\x00\x00\x00\x00\x04\x05\x06")
	charge := func(flag byte, limits int) string {
		b := append([]byte{flag}, appendI7(nil, epoch)...)
		b = append(b, byte(limits))
		for range limits {
			for _, v := range []int64{9, 0, 60_000, 60_000} {
				b = appendI7(b, v)
			}
		}
		return string(b)
	}
	good := "\x00" + string(appendI7(nil, epoch)) + "\x01" + charge(1, 1) + "\x01" + charge(1, 2) + charge(1, 1)
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Fuzz(func(t *testing.T, reply string) {
		_, _, body, err := decodeHead(reply)
		if err != nil {
			return
		}
		answers, err := decodeAnswers(groups, body)
		if err != nil {
			return
		}
		for i, a := range answers {
			if (a.err == nil) != (a.verdict.Len() == groups[i].Len()) {
				t.Errorf("group %d: %d decisions, %v", i, a.verdict.Len(), a.err)
			}
			for c := range a.verdict.Len() {
				d := a.verdict.Decision(c)
				// What is replayed may have been decided under another mode.
				refused := d.RetryAfter > 0 && (d.Replayed || groups[i].Charge(c).Policy.Mode == stint.Enforce)
				if d.Outcome == 0 || d.Remaining < 0 || d.RetryAfter < 0 || d.MoreAfter < 0 || d.ResetAfter < 0 ||
					d.Outcome == stint.Denied && !refused || refused && !d.Replayed && d.Outcome != stint.Denied {
					t.Errorf("group %d, charge %d: %+v", i, c, d)
				}
			}
		}
	})
}
