package parse

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStatusCurrent(t *testing.T) {
	for _, tc := range []struct {
		file string
		want GuestStatus
	}{
		{"status-lxc.json", GuestStatus{
			VMID: 101, Type: "lxc", Name: "web-proxy", Status: "running", Tags: []string{"dmz", "prod", "web"}, HAManaged: true, HAState: "started",
			CPUs: new(2.0), MemoryTotal: new(int64(536870912)), SwapTotal: new(int64(536870912)), DiskTotal: new(int64(8350298112)),
			PID: new(int64(23667)), Uptime: new(int64(1616)), Memory: new(int64(430080)), Swap: new(int64(0)), Disk: new(int64(2109440)),
			NetIn: new(int64(149480)), NetOut: new(int64(1242)), DiskRead: new(int64(0)), DiskWrite: new(int64(0)),
			Pressure: &Pressure{new(0.52), new(0.1), new(0.52), new(0.1), new(0.52), new(0.1)}, NICs: []NICTraffic{},
		}},
		{"status-lxc-stopped.json", GuestStatus{
			VMID: 103, Type: "lxc", Name: "pihole", Status: "stopped", Tags: []string{},
			CPUs: new(1.0), MemoryTotal: new(int64(268435456)), SwapTotal: new(int64(268435456)), DiskTotal: new(int64(4294967296)), NICs: []NICTraffic{},
		}},
		{"status-qemu.json", GuestStatus{
			VMID: 200, Type: "qemu", Name: "haos", Status: "running", QMPStatus: "running", Tags: []string{"dmz", "iot"}, HAManaged: true, HAState: "started",
			CPUs: new(2.0), MemoryTotal: new(int64(2147483648)), DiskTotal: new(int64(34359738368)),
			PID: new(int64(26855)), Uptime: new(int64(1154)), Memory: new(int64(1153409024)), MemoryHost: new(int64(29872128)), MemoryFree: new(int64(911372288)),
			NetIn: new(int64(4686)), NetOut: new(int64(4376)), DiskRead: new(int64(512)), DiskWrite: new(int64(0)),
			Pressure: &Pressure{new(0.52), new(0.1), new(0.52), new(0.1), new(0.52), new(0.1)},
			Balloon: &Balloon{
				Target: new(int64(2147483648)), Minimum: new(int64(1073741824)), Maximum: new(int64(2147483648)),
				GuestTotal: new(int64(2064781312)), GuestFree: new(int64(911372288)), Updated: unix(1795970990),
			},
			AgentConfigured: true, Machine: "pc-i440fx-7.2", QEMU: "7.2.22", NICs: []NICTraffic{{"tap200i0", new(int64(4686)), new(int64(4376))}},
		}},
		{"status-qemu-stopped.json", GuestStatus{
			VMID: 201, Type: "qemu", Name: "windows-11-arbeitsplatz-buero", Status: "stopped", QMPStatus: "stopped", Tags: []string{},
			CPUs: new(2.0), MemoryTotal: new(int64(17179869184)), DiskTotal: new(int64(274877906944)), NICs: []NICTraffic{},
		}},
		{"status-numbers-as-text.json", GuestStatus{
			VMID: 120, Type: "lxc", Name: "web", Status: "running", Tags: []string{"prod", "web"},
			CPUs: new(2.0), MemoryTotal: new(int64(1073741824)), SwapTotal: new(int64(1073741824)), DiskTotal: new(int64(10737418240)),
			PID: new(int64(3311)), Uptime: new(int64(1300000)), Memory: new(int64(322122547)), Swap: new(int64(12582912)), Disk: new(int64(1717986918)),
			NetIn: new(int64(210000123)), NetOut: new(int64(900000456)), DiskRead: new(int64(1410000896)), DiskWrite: new(int64(29876543488)),
			Pressure: &Pressure{CPUSome: new(0.0), IOFull: new(0.13)}, NICs: []NICTraffic{},
		}},
	} {
		t.Run(tc.file, func(t *testing.T) {
			got, notes, err := StatusCurrent(captured(t, tc.file))
			wantError(t, err, "")
			diff(t, []Note{}, notes)
			diff(t, tc.want, got)
		})
	}
}

func TestStatusCurrentPaused(t *testing.T) {
	got, _, err := StatusCurrent(captured(t, "status-qemu-paused.json"))
	wantError(t, err, "")
	diff(t, "running paused", got.Status+" "+got.QMPStatus)
}

func TestStatusCurrentFields(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		notes    []string
		err      string
	}{
		{"one field that is no number", `{"vmid":"120","status":"running","type":"lxc","pid":"abc","mem":"5"}`, []string{"pid: want a whole number"}, ""},
		{"empty text is nothing, and no mistake", `{"vmid":101,"status":"running","mem":"","cpus":"","template":""}`, []string{}, ""},
		{"without number", `{"status":"running"}`, nil, `guest status: want "vmid"`},
		{"without status", `{"vmid":101}`, nil, `guest status: want "status"`},
		{"nothing", "", nil, "guest status: want a JSON object, got nothing"},
		{"null", "null", nil, "got null"},
		{"half", `{"vmid":101,"sta`, nil, "got something else at byte"},
		{"a list", `[{"vmid":101}]`, nil, "another kind of JSON"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, notes, err := StatusCurrent([]byte(tc.in))
			wantError(t, err, tc.err)
			if err == nil {
				diff(t, tc.notes, noteTexts(notes))
			}
		})
	}
}

// Law: a number and the same digits as text are one.
func FuzzStatusCurrent(f *testing.F) {
	for _, name := range []string{"status-lxc.json", "status-qemu.json", "status-qemu-stopped.json", "status-numbers-as-text.json"} {
		f.Add(captured(f, name))
	}
	for _, g := range garbage {
		f.Add([]byte(g))
	}
	f.Fuzz(func(t *testing.T, out []byte) {
		got, _, err := StatusCurrent(out)
		var fields map[string]json.RawMessage
		if err != nil || json.Unmarshal(out, &fields) != nil {
			return
		}
		for k, v := range fields {
			if len(v) > 0 && (v[0] == '-' || v[0] >= '0' && v[0] <= '9') {
				fields[k] = json.RawMessage(fmt.Sprintf("%q", v))
			}
		}
		text, err := json.Marshal(fields)
		if err != nil {
			return
		}
		again, _, err := StatusCurrent(text)
		if err != nil || !cmp.Equal(got, again) {
			t.Fatalf("%v: %s", err, cmp.Diff(got, again))
		}
	})
}
