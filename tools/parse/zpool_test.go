package parse

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func deviceRows(p ZPool) []string {
	rows := []string{}
	for _, d := range p.Devices {
		row := fmt.Sprintf("%d %s %s%s", d.Level, d.Name, d.Class, d.State)
		if d.Errors() > 0 {
			row += fmt.Sprint(" errors=", d.Errors())
		}
		if d.Leaf {
			row += " leaf"
		}
		if d.Remark != "" {
			row += " " + d.Remark
		}
		rows = append(rows, row)
	}
	return rows
}

func TestZPoolStatusOnlineButNotWell(t *testing.T) {
	pools, notes, err := ZPoolStatus(captured(t, "zpool-status-not-well.txt"), nil)
	wantError(t, err, "")
	diff(t, []Note{}, notes)
	diff(t, 2, len(pools))
	rpool, tank := pools[0], pools[1]
	diff(t, ZPoolScan{Kind: "scrub", State: "finished", At: new(time.Date(2026, 11, 8, 0, 31, 14, 0, time.UTC)), Errors: new(int64(0))}, rpool.Scan)
	diff(t, []any{"rpool", "ONLINE", "", true, "", int64(0)}, []any{rpool.Name, rpool.State, rpool.Status, rpool.NoErrors, rpool.MessageID, *rpool.DataErrors})
	diff(t, "ZFS-8000-9P", tank.MessageID)
	diff(t, time.Date(2026, 9, 13, 12, 38, 13, 0, time.UTC), *tank.Scan.At)
	diff(t, "One or more devices has experienced an unrecoverable error.  An attempt was made to correct the error.  Applications are unaffected.", tank.Status)
	diff(t, []string{
		"0 tank ONLINE", "1 raidz2-0 ONLINE", "2 wwn-0x5000000000000001 ONLINE leaf", "2 wwn-0x5000000000000002 ONLINE errors=1 leaf",
		"2 wwn-0x5000000000000003 ONLINE errors=1055 leaf", "2 wwn-0x5000000000000004 ONLINE leaf",
	}, deviceRows(tank))
	diff(t, []bool{true, false}, []bool{tank.Devices[4].Rounded, tank.Devices[3].Rounded})
}

func TestZPoolStatusResilver(t *testing.T) {
	berlin := time.FixedZone("CET", 3600)
	pools, notes, err := ZPoolStatus(captured(t, "zpool-status-resilver.txt"), berlin)
	wantError(t, err, "")
	diff(t, []Note{}, notes)
	diff(t, ZPoolScan{Kind: "resilver", State: "running", At: new(time.Date(2026, 11, 29, 14, 0, 0, 0, time.UTC)), Progress: new(0.2125)}, pools[0].Scan)
	diff(t, []any{false, int64(2)}, []any{pools[0].NoErrors, *pools[0].DataErrors})
	diff(t, []string{
		"0 tank DEGRADED", "1 mirror-0 DEGRADED", "2 ata-A ONLINE leaf", "2 replacing-1 DEGRADED", "3 12345678901234567890 UNAVAIL errors=213 leaf was /dev/sdb1",
		"3 ata-C ONLINE leaf resilvering", "0 special special", "1 nvme-X specialONLINE leaf", "0 logs logs", "1 nvme-L logsONLINE leaf", "0 cache cache",
		"1 nvme-K cacheFAULTED errors=18 leaf too many errors", "0 spares spares", "1 ata-S sparesAVAIL leaf",
	}, deviceRows(pools[0]))
	suspended := pools[1]
	diff(t, []any{"SUSPENDED", ZPoolScan{}, true, false}, []any{suspended.State, suspended.Scan, suspended.DataErrors == nil, suspended.NoErrors})
	diff(t, []string{"0 empty UNAVAIL insufficient replicas", "1 sdz UNAVAIL leaf"}, deviceRows(suspended))
}

func TestZPoolScans(t *testing.T) {
	at := func(y int, m time.Month, d, h, min int) *time.Time {
		return new(time.Date(y, m, d, h, min, 0, 0, time.UTC))
	}
	for _, tc := range []struct {
		in   string
		want ZPoolScan
	}{
		{"scrub repaired 0B in 0 days 00:07:11 with 0 errors on Sun Nov  8 00:31:00 2026", ZPoolScan{"scrub", "finished", at(2026, 11, 8, 0, 31), new(int64(0)), nil}},
		{"scrub repaired 1.5M in 0h7m with 3 errors on Sun Nov 18 00:31:00 2018", ZPoolScan{"scrub", "finished", at(2018, 11, 18, 0, 31), new(int64(3)), nil}},
		{"resilvered 1.20G in 00:01:02 with 0 errors on Mon Nov  9 10:00:00 2026", ZPoolScan{"resilver", "finished", at(2026, 11, 9, 10, 0), new(int64(0)), nil}},
		{"scrub canceled on Sun Nov  8 00:31:00 2026", ZPoolScan{"scrub", "canceled", at(2026, 11, 8, 0, 31), nil, nil}},
		{"scrub paused since Sun Nov  8 00:31:00 2026\n\tscrub started on Sun Nov  8 00:24:00 2026\n\t1T scanned, 0B repaired, 12.5% done", ZPoolScan{"scrub", "paused", at(2026, 11, 8, 0, 31), nil, new(0.125)}},
		{"scrub in progress since Sun Nov  8 00:31:00 2026\n\t0B repaired, 0.00% done, no estimated completion time", ZPoolScan{"scrub", "running", at(2026, 11, 8, 0, 31), nil, new(0.0)}},
		{"none requested", ZPoolScan{}},
	} {
		pools, _, err := ZPoolStatus([]byte("  pool: p\n state: ONLINE\n  scan: "+tc.in+"\nconfig:\n\n\tNAME  STATE  READ WRITE CKSUM\n\tp     ONLINE 0 0 0\n"), nil)
		wantError(t, err, "")
		diff(t, tc.want, pools[0].Scan)
	}
}

func TestZPoolStatusBadInput(t *testing.T) {
	for _, tc := range []struct{ name, in, err string }{
		{"no pool", "no pools available\n", ""},
		{"nothing", "", `zpool status: want "pool:" lines, got none`},
		{"garbage", "\x00\xff\n{\n", `want "pool:" lines`},
		{"cut before the configuration", "  pool: tank\n state: ONLINE\n", "want a state and a configuration of each of 1 pools"},
		{"cut in the second pool", string(captured(t, "zpool-status-not-well.txt"))[:700], "want a state and a configuration of each of 2 pools"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, _, err := ZPoolStatus([]byte(tc.in), nil)
			wantError(t, err, tc.err)
		})
	}
}

func TestZPoolStates(t *testing.T) {
	got, err := ZPoolStates([]byte("/proc/spl/kstat/zfs/rpool/state:ONLINE\n/proc/spl/kstat/zfs/big tank/state:SUSPENDED\n"))
	wantError(t, err, "")
	diff(t, map[string]string{"rpool": "ONLINE", "big tank": "SUSPENDED"}, got)
	got, err = ZPoolStates(nil)
	wantError(t, err, "")
	diff(t, map[string]string{}, got)
	for _, bad := range []string{"ONLINE", "/proc/spl/kstat/zfs/rpool/state:", "/proc/spl/kstat/zfs/a/b/state:ONLINE", "/etc/rpool/state:ONLINE"} {
		_, err := ZPoolStates([]byte("/proc/spl/kstat/zfs/rpool/state:ONLINE\n" + bad + "\n"))
		wantError(t, err, "zpool states: line 2: want")
	}
}

func TestZPoolList(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     []ZPoolSize
		err      string
	}{
		{"two", "tank\t100\t80\t20\t-\t80\tDEGRADED\ton\nrpool\t1992864825344\t412316860416\t1580547964928\t7\t20%\tONLINE\toff\n", []ZPoolSize{
			{"rpool", new(int64(1992864825344)), new(int64(412316860416)), new(int64(1580547964928)), new(0.07), new(0.2), "ONLINE", false},
			{"tank", new(int64(100)), new(int64(80)), new(int64(20)), nil, new(0.8), "DEGRADED", true},
		}, ""},
		{"faulted", "tank\t-\t-\t-\t-\t-\tFAULTED\t-\n", []ZPoolSize{{Name: "tank", Health: "FAULTED"}}, ""},
		{"none", "", []ZPoolSize{}, ""},
		{"no pool", "no pools available\n", []ZPoolSize{}, ""},
		{"for people", "NAME   SIZE  ALLOC   FREE\n", nil, "zpool list: line 1: want 8 columns with a name and bytes, got 1"},
		{"cut", "tank\t100\t80\t20\t-\t80\tDEGRADED\ton\nrpool\t19", nil, "line 2: want 8 columns"},
		{"without -p", "tank\t1.8T\t80G\t20G\t1%\t80%\tONLINE\toff\n", nil, "line 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ZPoolList([]byte(tc.in))
			wantError(t, err, tc.err)
			diff(t, tc.want, got)
		})
	}
}

func TestZFSList(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     []Dataset
		err      string
	}{
		{"a volume and a container's volume", "rpool/data/vm-100-disk-0\tvolume\t34091302912\t60\t20\t-\t-\t34359738368\t5\t-\nrpool/data/subvol-104-disk-0\tfilesystem\t1503238553\t32856499815\t1503238553\t0\t34359738368\t-\t0\t/rpool/data/subvol-104-disk-0\n", []Dataset{
			{"rpool/data/subvol-104-disk-0", "filesystem", new(int64(1503238553)), new(int64(32856499815)), new(int64(1503238553)), nil, new(int64(34359738368)), nil, new(int64(0)), "/rpool/data/subvol-104-disk-0"},
			{"rpool/data/vm-100-disk-0", "volume", new(int64(34091302912)), new(int64(60)), new(int64(20)), nil, nil, new(int64(34359738368)), new(int64(5)), ""},
		}, ""},
		{"none", "no datasets available\n", []Dataset{}, ""},
		{"nothing", "", []Dataset{}, ""},
		{"a column too few", "rpool\tfilesystem\t1\t2\t3\n", nil, "zfs list: line 1: want 10 columns"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ZFSList([]byte(tc.in))
			wantError(t, err, tc.err)
			diff(t, tc.want, got)
		})
	}
}

// Law: two outputs one after the other are their pools one after the other.
func FuzzZPoolStatus(f *testing.F) {
	f.Add(captured(f, "zpool-status-not-well.txt"))
	f.Add(captured(f, "zpool-status-resilver.txt"))
	for _, g := range garbage {
		f.Add([]byte(g))
	}
	other := captured(f, "zpool-status-resilver.txt")
	f.Fuzz(func(t *testing.T, out []byte) {
		one, _, err := ZPoolStatus(out, nil)
		two, _, err2 := ZPoolStatus(other, nil)
		if err != nil || err2 != nil || bytes.Contains(out, []byte("no pools")) {
			return
		}
		both, _, err := ZPoolStatus(append(append(bytes.Clone(out), '\n'), other...), nil)
		if err != nil || !cmp.Equal(both, append(one, two...)) {
			t.Fatalf("%v: %s", err, cmp.Diff(both, append(one, two...)))
		}
		for _, p := range one {
			for _, d := range p.Devices {
				if strings.TrimSpace(d.Name) == "" || d.Errors() < 0 {
					t.Fatalf("impossible device %+v", d)
				}
			}
		}
	})
}

// Law: lists for scripts are whole or refused; a line more is an entry more.
func FuzzZFSLists(f *testing.F) {
	f.Add("rpool\t1992864825344\t412316860416\t1580547964928\t7\t20\tONLINE\toff\n")
	f.Add("rpool\tfilesystem\t1\t2\t3\t0\t0\t-\t0\t/rpool\n")
	f.Add("/proc/spl/kstat/zfs/rpool/state:ONLINE\n")
	f.Fuzz(func(t *testing.T, out string) {
		out = strings.TrimRight(out, "\r\n")
		if pools, err := ZPoolList([]byte(out)); err == nil {
			more, err := ZPoolList([]byte(out + "\nx\t1\t1\t1\t1\t1\tONLINE\toff\n"))
			if err != nil || len(more) != len(pools)+1 {
				t.Fatal(len(pools), len(more), err)
			}
		}
		if sets, err := ZFSList([]byte(out)); err == nil {
			more, err := ZFSList([]byte(out + "\nx\tvolume\t1\t1\t1\t-\t-\t1\t1\t-\n"))
			if err != nil || len(more) != len(sets)+1 {
				t.Fatal(len(sets), len(more), err)
			}
		}
		if states, err := ZPoolStates([]byte(out)); err == nil {
			for pool, state := range states {
				if pool == "" || state == "" {
					t.Fatal("a pool without a name or a state")
				}
			}
		}
	})
}
