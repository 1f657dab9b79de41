package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"pvelens/fixtures"
)

// clusterTools are the tools that look at every node and guest at once.
var clusterTools = []string{"cluster_health", "storage_health", "recent_tasks", "pending_updates", "snapshot_audit", "config_audit"}

// A big cluster is answered within the deadline, small, and without keeping much.
func TestScale(t *testing.T) {
	env := patient(t, replay(t, fixtures.Generate(fixtures.Size{Nodes: 12, Guests: 900}), fixtures.Options{}))
	for _, name := range clusterTools {
		t.Run(name, func(t *testing.T) {
			r, err := call(t, env, name, `{}`)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range r.Head().Problems {
				if !strings.HasPrefix(p.Message, "backup storage pbs was not read") { // it is down in generated clusters
					t.Errorf("problem: %s: %s", p.Node, p.Message)
				}
			}
			b, err := Encode(r)
			if err != nil {
				t.Fatal(err)
			}
			if len(b) > maxConcise {
				t.Errorf("a concise answer of %d bytes, want at most %d", len(b), maxConcise)
			}
		})
	}
}

// BenchmarkClusterTools shows how time and memory grow with the cluster: guests
// and nodes double from size to size.
func BenchmarkClusterTools(b *testing.B) {
	for _, size := range []fixtures.Size{{Nodes: 16, Guests: 1250}, {Nodes: 32, Guests: 2500}, {Nodes: 64, Guests: 5000}} {
		env := patient(b, replay(b, fixtures.Generate(size), fixtures.Options{}))
		for _, name := range clusterTools {
			var tool Tool
			for _, x := range All() {
				if x.Name == name {
					tool = x
				}
			}
			b.Run(fmt.Sprintf("%s/%d-nodes-%d-guests", name, size.Nodes, size.Guests), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
					if _, err := tool.Call(ctx, env, json.RawMessage(`{}`)); err != nil {
						b.Fatal(err)
					}
					cancel()
				}
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				b.ReportMetric(float64(m.HeapAlloc)/1e6, "heap-MB")
			})
		}
	}
}
