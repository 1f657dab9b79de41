package parse

import (
	"slices"
	"testing"
	"time"
)

func TestHistoryRecorded(t *testing.T) {
	points, notes, err := History(captured(t, "history-lxc.json"))
	wantError(t, err, "")
	diff(t, []Note{}, notes)
	measured := slices.IndexFunc(points, HistoryPoint.Measured)
	if measured != 44 {
		t.Fatalf("the first slice with data is %d, want 44", measured)
	}
	diff(t, HistoryPoint{Time: time.Unix(1795966560, 0).UTC()}, points[0])
	diff(t, HistoryPoint{
		Time: time.Unix(1795969200, 0).UTC(), CPU: new(0.0), CPUs: new(2.0), Memory: new(425984.0), MemoryTotal: new(536870912.0), Disk: new(2109440.0), DiskTotal: new(8350298112.0),
		NetIn: new(128.731707317073), NetOut: new(0.0), DiskRead: new(0.0), DiskWrite: new(0.0), Pressure: &Pressure{new(0.52), new(0.1), new(0.52), new(0.1), new(0.52), new(0.1)},
	}, points[44])
}

func TestHistory(t *testing.T) {
	at := func(n int64) time.Time { return time.Unix(n, 0).UTC() }
	for _, tc := range []struct {
		name, in string
		want     []HistoryPoint
		notes    []string
		err      string
	}{
		{"not in order", `[{"time":1800000060},{"time":"1800000000","cpu":"0.5"}]`, []HistoryPoint{{Time: at(1800000000), CPU: new(0.5)}, {Time: at(1800000060)}}, []string{}, ""},
		{"null, NaN as text, bare nan", `[{"time":1800000000,"cpu":null,"mem":"NaN","netin":nan,"netout":-nan,"disk":Inf,"maxcpu":2}]`, []HistoryPoint{{Time: at(1800000000), CPUs: new(2.0)}}, []string{}, ""},
		{"nan inside text stays", `[{"time":1800000000,"note":"nan \" nan","cpu":nan}]`, []HistoryPoint{{Time: at(1800000000)}}, []string{}, ""},
		{"no time, no number", `[{"cpu":1},{"time":1800000000,"cpu":"much"}]`, []HistoryPoint{{Time: at(1800000000)}}, []string{"line 1: time: want seconds since 1970", "line 2: cpu: want a number"}, ""},
		{"nothing yet", "[]", []HistoryPoint{}, []string{}, ""},
		{"nothing", "", nil, nil, "guest history: want a JSON array of objects, got nothing"},
		{"half", `[{"time":18`, nil, nil, "got something else at byte"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, notes, err := History([]byte(tc.in))
			wantError(t, err, tc.err)
			diff(t, tc.want, got)
			if err == nil {
				diff(t, tc.notes, noteTexts(notes))
			}
		})
	}
}

// Law: the points are in order, and no measure is negative.
func FuzzHistory(f *testing.F) {
	f.Add(captured(f, "history-lxc.json")[:2000])
	f.Add([]byte(`[{"time":1800000000,"cpu":nan,"mem":-1}]`))
	for _, g := range garbage {
		f.Add([]byte(g))
	}
	f.Fuzz(func(t *testing.T, out []byte) {
		points, _, err := History(out)
		if err != nil {
			return
		}
		if !slices.IsSortedFunc(points, func(a, b HistoryPoint) int { return a.Time.Compare(b.Time) }) {
			t.Fatal("not in order")
		}
		for _, p := range points {
			for _, f := range []*float64{p.CPU, p.Memory, p.NetIn, p.DiskWrite} {
				if f != nil && !(*f >= 0) {
					t.Fatalf("measure %v", *f)
				}
			}
		}
	})
}
