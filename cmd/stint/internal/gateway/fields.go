package gateway

import (
	"context"
	"net/http"
	"strings"

	"github.com/dunglas/httpsfv"
)

// quotaFields are the fields that the limit in front of this package has set,
// in the spelling of http.Header's keys.
var quotaFields = [...]string{"Ratelimit-Policy", "Ratelimit"}

// outer is what was on the response before the upstream was asked. It is kept
// apart from the ResponseWriter, which forgets it when an interim response
// passes.
type outer struct {
	writer http.ResponseWriter
	values [len(quotaFields)]string
}

type outerKey struct{}

func rememberFields(w http.ResponseWriter, r *http.Request) *http.Request {
	o := &outer{writer: w}
	for i, name := range quotaFields {
		o.values[i] = w.Header().Get(name)
	}
	return r.WithContext(context.WithValue(r.Context(), outerKey{}, o))
}

// mergeFields makes one line of each field: the items of the limit in front,
// then those of the upstream, which may have limits of its own. An upstream's
// field that is no such list is dropped, since it would spoil ours. Where the
// limit in front said nothing, the upstream's is passed on as it is.
func mergeFields(res *http.Response) error {
	o, ok := res.Request.Context().Value(outerKey{}).(*outer)
	if !ok {
		return nil
	}
	for i, name := range quotaFields {
		if o.values[i] == "" {
			continue
		}
		o.writer.Header().Del(name)
		merged := o.values[i]
		if theirs := strings.Join(res.Header[name], ", "); isItemList(theirs) {
			merged += ", " + theirs
		}
		res.Header.Set(name, merged)
	}
	return nil
}

func restoreFields(w http.ResponseWriter, r *http.Request) {
	o, ok := r.Context().Value(outerKey{}).(*outer)
	if !ok {
		return
	}
	for i, name := range quotaFields {
		if o.values[i] != "" {
			w.Header().Set(name, o.values[i])
		}
	}
}

// isItemList reports whether text is a list of named items as the drafts of
// RateLimit have it since the eighth.
func isItemList(text string) bool {
	list, err := httpsfv.UnmarshalList([]string{text})
	if err != nil || len(list) == 0 {
		return false
	}
	for _, member := range list {
		item, ok := member.(httpsfv.Item)
		if !ok {
			return false
		}
		if _, ok := item.Value.(string); !ok {
			return false
		}
	}
	return true
}
