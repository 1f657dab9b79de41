package parse

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// GuestStatus is one guest's state as its own node sees it now. There is no CPU
// load: pvesh starts anew for each call and has no earlier sample to compare
// with, so it always prints 0. Live numbers stand only while the guest runs.
type GuestStatus struct {
	VMID      int
	Type      string // lxc or qemu
	Name      string
	Status    string // running or stopped; a paused VM is running here
	QMPStatus string // VMs: running, paused, prelaunch, io-error, …; "" for containers
	Template  bool
	Tags      []string // sorted
	Lock      string
	HAManaged bool
	HAState   string

	CPUs        *float64
	MemoryTotal *int64 // bytes, configured
	SwapTotal   *int64 // containers
	DiskTotal   *int64

	PID        *int64
	Uptime     *int64 // seconds
	Memory     *int64 // bytes
	MemoryHost *int64 // VMs, PVE 9: what the VM takes on the host
	MemoryFree *int64 // VMs with a balloon driver: what the guest calls free
	Swap       *int64 // containers
	Disk       *int64 // containers; Proxmox does not measure it for VMs
	NetIn      *int64 // bytes since the start
	NetOut     *int64
	DiskRead   *int64
	DiskWrite  *int64
	Pressure   *Pressure // PVE 9
	Balloon    *Balloon  // VMs whose driver reports

	AgentConfigured bool   // VMs
	Machine         string // running-machine
	QEMU            string // running-qemu
	NICs            []NICTraffic
}

// Pressure is the share of the last ten seconds in which tasks waited, in percent.
type Pressure struct {
	CPUSome, CPUFull, IOSome, IOFull, MemorySome, MemoryFull *float64
}

// Balloon is what the driver inside a VM reports, in bytes.
type Balloon struct {
	Target     *int64 // what the host grants now
	Minimum    *int64 // configured
	Maximum    *int64
	GuestTotal *int64
	GuestFree  *int64 // without the guest's page cache
	Updated    *time.Time
}

// NICTraffic is one tap device of a VM.
type NICTraffic struct {
	Device  string // tap200i0
	In, Out *int64
}

// StatusCurrent reads /nodes/N/{lxc,qemu}/ID/status/current of pvesh (PVE 7 to 9):
//
//	{"cpu":0,"cpus":2,"disk":2109440,"ha":{"managed":1,"state":"started"},"maxmem":536870912,"mem":430080,"name":"web-proxy","pressurecpusome":"0.52","status":"running","type":"lxc","uptime":1616,"vmid":101,…}
//
// Numbers may be text. A field that is none is absent and noted.
func StatusCurrent(out []byte) (GuestStatus, []Note, error) {
	o, err := jsonOne("guest status", out)
	if err != nil {
		return GuestStatus{}, nil, err
	}
	vmid := guestNumber(o.integer("vmid"))
	if vmid == nil {
		return GuestStatus{}, nil, fmt.Errorf("guest status: want %q", "vmid")
	}
	g := GuestStatus{
		VMID: *vmid, Type: statusKind(o), Name: o.text("name"), Status: o.text("status"), QMPStatus: o.text("qmpstatus"),
		Template: o.yes("template"), Tags: tagList(o.text("tags")), Lock: o.text("lock"),
		CPUs: o.number("cpus"), MemoryTotal: positive(o.integer("maxmem")), SwapTotal: nonNegative(o.integer("maxswap")), DiskTotal: positive(o.integer("maxdisk")),
		AgentConfigured: o.yes("agent"), NICs: []NICTraffic{},
	}
	if g.Status == "" {
		return GuestStatus{}, nil, fmt.Errorf("guest status: want %q", "status")
	}
	if ha, ok := o.object("ha"); ok {
		g.HAManaged, g.HAState = ha.yes("managed"), ha.text("state")
	}
	if g.Status == "running" {
		g.measure(o)
	}
	return g, *o.notes, nil
}

// statusKind: only containers name their type.
func statusKind(o jsonObject) string {
	if o.text("type") == "lxc" {
		return "lxc"
	}
	return "qemu"
}

func (g *GuestStatus) measure(o jsonObject) {
	g.PID, g.Uptime = positive(o.integer("pid")), nonNegative(o.integer("uptime"))
	g.Memory, g.MemoryHost, g.MemoryFree = nonNegative(o.integer("mem")), positive(o.integer("memhost")), nonNegative(o.integer("freemem"))
	g.NetIn, g.NetOut = nonNegative(o.integer("netin")), nonNegative(o.integer("netout"))
	g.DiskRead, g.DiskWrite = nonNegative(o.integer("diskread")), nonNegative(o.integer("diskwrite"))
	g.Machine, g.QEMU = o.text("running-machine"), o.text("running-qemu")
	g.Pressure = pressure(o)
	if g.Type == "lxc" {
		g.Swap, g.Disk, g.MemoryHost = nonNegative(o.integer("swap")), positive(o.integer("disk")), nil
		return
	}
	g.Balloon = balloon(o)
	if nics, ok := o.object("nics"); ok {
		for _, device := range nics.keys() {
			if n, ok := nics.object(device); ok {
				g.NICs = append(g.NICs, NICTraffic{device, nonNegative(n.integer("netin")), nonNegative(n.integer("netout"))})
			}
		}
	}
}

func pressure(o jsonObject) *Pressure {
	if !slices.ContainsFunc(o.keys(), func(k string) bool { return strings.HasPrefix(k, "pressure") }) {
		return nil
	}
	return &Pressure{
		CPUSome: o.number("pressurecpusome"), CPUFull: o.number("pressurecpufull"),
		IOSome: o.number("pressureiosome"), IOFull: o.number("pressureiofull"),
		MemorySome: o.number("pressurememorysome"), MemoryFull: o.number("pressurememoryfull"),
	}
}

func balloon(o jsonObject) *Balloon {
	info, ok := o.object("ballooninfo")
	if !ok {
		return nil
	}
	return &Balloon{
		Target: cmp.Or(positive(info.integer("actual")), positive(o.integer("balloon"))), Minimum: positive(o.integer("balloon_min")),
		Maximum: positive(info.integer("max_mem")), GuestTotal: positive(info.integer("total_mem")), GuestFree: nonNegative(info.integer("free_mem")),
		Updated: info.seconds("last_update"),
	}
}
