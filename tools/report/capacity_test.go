package report

import (
	"testing"

	"pvelens/tools/parse"
)

// The ZFS cache counts as used memory until it is known how much of it the kernel
// gives back; then the rest decides whether memory is full.
func TestMemoryWithoutTheZFSCache(t *testing.T) {
	const total, used, cache = 137438953472, 132284992717, 103079215104
	memory := &parse.Meminfo{Total: n64(total), Available: n64(total - used)}
	for _, tt := range []struct {
		name     string
		reported *int64 // what .rrd says of the cache, since PVE 9
		proc     *parse.NodeProc
		without  *int64
		note     bool
		full     bool // is NODE_MEM_HIGH found?
	}{
		{"cache and its minimum", n64(cache), &parse.NodeProc{Memory: memory, ARC: &parse.ARC{Size: n64(cache), Min: n64(4294967296), Max: n64(cache)}}, n64(33500744909), false, false},
		{"no ZFS", n64(0), &parse.NodeProc{Memory: memory}, n64(used), false, true},
		{"a cache, but nothing of its minimum", n64(cache), &parse.NodeProc{Memory: memory}, nil, true, false},
		{"the node said nothing", n64(cache), nil, nil, true, false},
		{"the node said nothing, before PVE 9", nil, nil, nil, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			st := &parse.State{Members: parse.Members{Node: "a"}, RRD: parse.RRD{Nodes: map[string]parse.RRDNode{"a": {Node: "a", MemTotal: n64(total), MemUsed: n64(used), ARCSize: tt.reported}}}}
			c := NodeCapacity(NodeView{Cluster: ClusterView{State: st}, Node: "a", Proc: tt.proc}, Judge{})
			full := false
			for _, f := range c.Findings {
				full = full || f.Code == "NODE_MEM_HIGH"
			}
			same := (tt.without == nil) == (c.MemoryUsedWithoutCacheBytes == nil) && (tt.without == nil || *tt.without == *c.MemoryUsedWithoutCacheBytes)
			if !same || (c.MemoryNote != "") != tt.note || full != tt.full {
				t.Errorf("without cache %v, note %q, full %v", c.MemoryUsedWithoutCacheBytes, c.MemoryNote, full)
			}
		})
	}
}
