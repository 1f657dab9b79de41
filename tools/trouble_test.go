package tools

import (
	"strings"
	"testing"
	"time"

	"pvelens/allowlist"
	"pvelens/fixtures"
	"pvelens/fixtures/scenarios"
	"pvelens/tools/report"
)

// A user of www-data reads the cluster's files but starts no Perl: the answers
// come from files, and say what only root could tell.
func TestWithoutRootFilesAnswer(t *testing.T) {
	env := replay(t, fixtures.Heimlabor(), fixtures.Options{Logins: map[string]fixtures.Login{"": {Rights: allowlist.WWWData}}})
	st := answer[*report.GuestStatus](t, env, "get_guest_status", `{"guest":200}`)
	if st.Status != "running" || st.StatusSource != "pvestatd" || !strings.Contains(st.StatusReason, "not asked") || st.Complete {
		t.Errorf("got %s from %s, %q, complete %v", st.Status, st.StatusSource, st.StatusReason, st.Complete)
	}
	if st.CPURatio == nil || st.MemoryUsedBytes == nil || st.MemorySource != report.MemoryGuest || st.DiskUsedBytes != nil {
		t.Errorf("numbers: %+v", st)
	}
	stores := answer[*report.StorageList](t, env, "list_storage", `{"node":"pve1"}`)
	for _, s := range stores.Items {
		if s.State == report.StorageInactive && s.Reason != "pvestatd does not report it; its log was not read" {
			t.Errorf("%s: %q", s.Storage, s.Reason)
		}
	}
	if stores.Complete {
		t.Error("the reasons are missing, so the answer is not complete")
	}
	backups := answer[*report.BackupList](t, env, "list_backups", `{}`)
	for _, g := range backups.Guests {
		if g.Verdict != report.Unknown {
			t.Errorf("guest %d: %s, but no storage was read", g.VMID, g.Verdict)
		}
	}
	for _, f := range backups.Findings {
		if f.Code == "BACKUP_NONE" || f.Code == "BACKUP_STALE" {
			t.Errorf("%s without having read a storage", f.Code)
		}
	}
	h := answer[*report.GuestHealth](t, env, "guest_health_summary", `{"guest":101}`)
	if h.Verdict == "ok" {
		t.Error("verdict ok although the backups are unknown")
	}
}

// A storage that hangs costs its own part, not the answer.
func TestHangingStorageCostsItsPart(t *testing.T) {
	env := replay(t, fixtures.Heimlabor(), fixtures.Options{Cost: map[string]time.Duration{"backups": time.Minute}})
	_, p := behind(t, env)
	p.Deadline = 1500 * time.Millisecond
	start := time.Now()
	r := answer[*report.BackupList](t, env, "list_backups", `{}`)
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("took %s", d)
	}
	if r.Complete || len(r.Guests) == 0 || r.Guests[0].Verdict != report.Unknown {
		t.Errorf("complete %v, guests %+v", r.Complete, r.Guests)
	}
	for _, s := range r.Storages {
		if s.Read {
			t.Errorf("%s was read", s.Storage)
		}
	}
	failed := false
	for _, f := range r.Findings {
		failed = failed || f.Code == "BACKUP_JOB_FAILED" && f.Subject == "guest/103"
	}
	if !failed {
		t.Error("the logs were read, and 103's failure is missing")
	}
	env2 := replay(t, fixtures.Heimlabor(), fixtures.Options{Cost: map[string]time.Duration{"backups": time.Minute, "lxc-docker-ps": time.Minute}})
	_, p2 := behind(t, env2)
	p2.Deadline = 1500 * time.Millisecond
	h := answer[*report.GuestHealth](t, env2, "guest_health_summary", `{"guest":102}`)
	got := map[string]string{}
	for _, c := range h.Checks {
		got[c.Check] = c.Result
	}
	if got["backup"] != report.Unknown || got["containers"] != report.Unknown || got["cpu"] != "ok" || got["memory"] != "warning" || h.Complete {
		t.Errorf("got %v, complete %v", got, h.Complete)
	}
}

// The texts of a node are data: nothing in a report can drive a terminal, and no
// line can look like another one.
func TestTextsOfNodesAreCleaned(t *testing.T) {
	const evil = "x\x1b[2J\u202egnp\u200b\r\n! ok"
	sc := rewritten(t, func(s string) string { return s }, map[string]fixtures.Answer{
		"backups+pve1+usb-backup": printed(`[{"content":"backup","ctime":1795833002,"format":"tar.zst","notes":"` + "a\\u001b[2J\\u202eb" + `","size":5,"vmid":101,"volid":"usb-backup:backup/vzdump-lxc-101-2026_11_28-02_30_02.tar.zst"}]`),
		"storage-reasons":         printed("1795971190.1 pve1 pvestatd[1]: storage 'nas-nfs' is not online " + evil + "\n"),
		"backup-logs":             printed("/var/log/vzdump/lxc-103.log:2026-11-28 02:33:09 ERROR: Backup of VM 103 failed - " + "x\x1b[2J\u202e" + "\n"),
	})
	env := replay(t, sc, fixtures.Options{})
	for _, c := range []struct{ tool, args string }{{"list_backups", `{"detail":"detailed"}`}, {"list_storage", `{"detail":"detailed"}`}, {"guest_health_summary", `{"guest":103}`}} {
		r, err := call(t, env, c.tool, c.args)
		if err != nil {
			t.Fatal(err)
		}
		b, err := Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range []string{"\x1b", "\\u001b", "\u202e", "\u200b"} {
			if strings.Contains(string(b), bad) {
				t.Errorf("%s: %q in the report", c.tool, bad)
			}
		}
	}
}

// Arguments that name nothing are errors that say so, not empty lists.
func TestNamesThatDoNotExist(t *testing.T) {
	env := replay(t, fixtures.Heimlabor(), fixtures.Options{})
	for _, c := range []struct{ tool, args, want string }{
		{"get_guest_status", `{"guest":"nobody"}`, "NOT_FOUND"},
		{"get_guest_status", `{}`, "INVALID_ARGUMENT"},
		{"list_storage", `{"storage":"nope"}`, "NOT_FOUND"},
		{"list_storage", `{"node":"nope"}`, "NOT_FOUND"},
		{"list_snapshots", `{"guest":998}`, "NOT_FOUND"},
		{"list_backups", `{"storage":"local-lvm"}`, "NOT_FOUND"},
		{"list_backups", `{"guest":998}`, "NOT_FOUND"},
		{"list_backups", `{"guest":"nobody"}`, "NOT_FOUND"},
		{"guest_health_summary", `{"guest":5}`, "INVALID_ARGUMENT"},
	} {
		_, err := call(t, env, c.tool, c.args)
		if err == nil || string(AsError(err).Code) != c.want {
			t.Errorf("%s %s: got %v, want %s", c.tool, c.args, err, c.want)
		}
	}
	r := answer[*report.BackupList](t, env, "list_backups", `{"guest":999}`)
	if len(r.Items) != 1 || !r.Items[0].Orphan || len(r.Guests) != 0 {
		t.Errorf("archives of a deleted guest can be asked for: %+v", r.Items)
	}
}

// Two clusters of one profile stay apart: rows and findings name theirs, and no
// totals are summed over both.
func TestTwoClusters(t *testing.T) {
	sc := scenarios.Named("pve8-single")
	sc.Machines = append(sc.Machines, scenarios.Named("pve74-single").Machines...)
	env := replay(t, sc, fixtures.Options{})
	stores := answer[*report.StorageList](t, env, "list_storage", `{}`)
	names := map[string]bool{}
	for _, s := range stores.Items {
		names[s.Cluster+"/"+s.Storage] = true
	}
	if !names["homelab/local"] || !names["pve7/local"] || stores.Totals != nil {
		t.Errorf("got %v, totals %v", names, stores.Totals)
	}
	backups := answer[*report.BackupList](t, env, "list_backups", `{"limit":500}`)
	for _, f := range backups.Findings {
		if !strings.HasPrefix(f.Subject, "homelab/guest/") && !strings.HasPrefix(f.Subject, "pve7/guest/") {
			t.Errorf("subject %s", f.Subject)
		}
	}
	for _, a := range backups.Items {
		if a.Orphan || a.Cluster != "homelab" {
			t.Errorf("got %+v", a)
		}
	}
	h := answer[*report.GuestHealth](t, env, "guest_health_summary", `{"guest":"pve7/100"}`)
	if h.Cluster != "pve7" || h.Verdict != "critical" || len(h.Findings) == 0 || h.Findings[0].Subject != "pve7/guest/100" {
		t.Errorf("got %+v", h.Findings)
	}
	snaps := answer[*report.SnapshotList](t, env, "list_snapshots", `{"node":"homelab"}`)
	if snaps.Guests != 7 {
		t.Errorf("looked at %d guests of homelab", snaps.Guests)
	}
	one := answer[*report.StorageList](t, env, "list_storage", `{"node":"pve7"}`)
	if one.Totals == nil || one.Totals.Counted != 2 {
		t.Errorf("totals of one node: %+v", one.Totals)
	}
}

// Proxmox has a storage local even when storage.cfg names none.
func TestLocalIsAlwaysThere(t *testing.T) {
	source := scenarios.Named("fresh-single").Machines[0].Source
	sc := scenarios.Named("fresh-single")
	sc.Machines[0].Source = instead{source, map[string]fixtures.Answer{"cluster-configs": {Exit: 2}}}
	r := answer[*report.StorageList](t, replay(t, sc, fixtures.Options{}), "list_storage", `{}`)
	if len(r.Items) != 1 || r.Items[0].Storage != "local" || r.Items[0].State != report.StorageActive || r.Items[0].TotalBytes == nil {
		t.Errorf("got %+v", r.Items)
	}
}
