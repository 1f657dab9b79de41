package tools

import (
	"bytes"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"pvelens/fixtures"
	"pvelens/tools/parse"
	"pvelens/tools/report"
)

// BenchmarkInventory parses and reports whole clusters: the time must grow with
// the number of guests, not faster.
func BenchmarkInventory(b *testing.B) {
	for _, guests := range []int{1000, 5000, 10000} {
		src := fixtures.Generate(fixtures.Size{Nodes: 8, Guests: guests, Seed: 1})
		source := src.Machines[0].Source
		state, configs, pools := fixtures.Ask(source, "state").Stdout, fixtures.Ask(source, "guest-configs").Stdout, fixtures.Ask(source, "pools").Stdout
		b.Run(fmt.Sprintf("guests=%d", guests), func(b *testing.B) {
			for b.Loop() {
				st, err := parse.ParseState(state)
				if err != nil {
					b.Fatal(err)
				}
				cfgs, err := parse.GuestConfigs(bytes.NewReader(configs))
				if err != nil {
					b.Fatal(err)
				}
				ps, _, err := parse.Pools(pools)
				if err != nil {
					b.Fatal(err)
				}
				inv := &inventory{}
				c := &cluster{State: st, parts: parts{configs: cfgs, pools: ps}}
				inv.clusters = append(inv.clusters, c)
				rows := report.Guests(c.view(inv), true)
				items, page := report.Cut(rows, 0, 500)
				if _, err := Encode(&report.GuestList{Items: items, Page: page}); err != nil || len(rows) != guests {
					b.Fatal(err, len(rows))
				}
			}
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N)/float64(guests)*1000, "ms/1000guests")
		})
	}
}

// BenchmarkWarmListGuests asks a warm cluster through the transport, at several
// round-trip times.
func BenchmarkWarmListGuests(b *testing.B) {
	for _, rtt := range []time.Duration{0, 20 * time.Millisecond, 100 * time.Millisecond} {
		b.Run("rtt="+rtt.String(), func(b *testing.B) {
			sc := fixtures.Heimlabor()
			sc.Machines = sc.Machines[:1]
			env := replay(b, sc, fixtures.Options{Delay: map[string]time.Duration{"": rtt}})
			env.Open = withTimeout(env.Open, 10*time.Second)
			for range 2 {
				if _, err := call(b, env, "list_guests", `{}`); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				if _, err := call(b, env, "list_guests", `{}`); err != nil {
					b.Fatal(err)
				}
			}
			if rtt > 0 {
				b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(rtt), "roundtrips/op")
			}
		})
	}
}

// BenchmarkListGuests64Nodes asks a cluster of 64 nodes of which a tenth is
// silent: the first call, then the next one.
func BenchmarkListGuests64Nodes(b *testing.B) {
	for b.Loop() {
		env := replay(b, fixtures.Generate(fixtures.Size{Nodes: 64, Guests: 1000, Silent: 6, Seed: 1}), fixtures.Options{Delay: map[string]time.Duration{"": 20 * time.Millisecond}})
		env.Open = withTimeout(env.Open, 3*time.Second)
		start := time.Now()
		if _, err := call(b, env, "list_guests", `{}`); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(start).Seconds(), "s/first")
		start = time.Now()
		if _, err := call(b, env, "list_guests", `{}`); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(start).Seconds(), "s/next")
	}
}

func BenchmarkNewServer(b *testing.B) {
	ts := All()
	for b.Loop() {
		NewServer(b.Context(), &Env{}, ts, "test", slog.New(slog.DiscardHandler))
	}
}
