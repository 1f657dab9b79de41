package tools

import (
	"strings"

	"pvelens/allowlist"
	"pvelens/tools/report"
)

// argv builds the words of a form from the values of its slots, in the order in
// which the slots first appear; what is left over repeats the last slot. It
// does not judge a value: allowlist.Check does.
func argv(id string, values ...string) ([]string, error) {
	form, ok := formByID[id]
	if !ok {
		return nil, errorf(report.Internal, "no form %s", id)
	}
	given := map[string]string{}
	var words []string
	for _, w := range form.Argv {
		for _, s := range slotsIn(w) {
			if _, ok := given[s]; !ok {
				if len(values) == 0 {
					return nil, errorf(report.Internal, "form %s: no value for %s", id, s)
				}
				given[s], values = values[0], values[1:]
			}
		}
		words = append(words, fill(w, given))
	}
	return append(words, values...), nil
}

var (
	formByID  = map[string]allowlist.Form{}
	slotNames []string
)

func init() {
	for _, f := range allowlist.Forms() {
		formByID[f.ID] = f
	}
	for _, s := range allowlist.Slots() {
		slotNames = append(slotNames, s[0])
	}
}

// slotsIn returns the slots that a word holds as path segments or their heads,
// in their order; a template may hold the same letters elsewhere.
func slotsIn(word string) []string {
	var out []string
	for _, segment := range strings.Split(word, "/") {
		for _, s := range slotNames {
			if strings.HasPrefix(segment, s) {
				out = append(out, s)
			}
		}
	}
	return out
}

func fill(word string, given map[string]string) string {
	segments := strings.Split(word, "/")
	for i, segment := range segments {
		for _, s := range slotNames {
			if rest, ok := strings.CutPrefix(segment, s); ok {
				segments[i] = given[s] + rest
			}
		}
	}
	return strings.Join(segments, "/")
}
