package tools

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pvelens/fixtures"
	"pvelens/fixtures/scenarios"
	"pvelens/tools/report"
)

func TestCoverageGoldens(t *testing.T) {
	for _, scenario := range []string{"heimlabor", "trouble", "pve8-single", "noquorum", "fresh-single", "pve74-single"} {
		for name, args := range map[string]string{"backup_coverage": `{"limit":500}`, "backup_coverage-files": `{"archives":false,"limit":500}`} {
			t.Run(scenario+"/"+name, func(t *testing.T) {
				t.Parallel()
				env := replay(t, scenarios.Named(scenario), fixtures.Options{})
				r := answer[*report.CoverageList](t, env, "backup_coverage", args)
				golden(t, scenario, name, r)
				readable(t, r)
				if p := perl(t, env); name == "backup_coverage-files" && len(p) > 0 {
					t.Errorf("started Perl: %v", p)
				}
			})
		}
	}
}

// readable fails when a report has nothing for people.
func readable(t *testing.T, r report.Tabler) {
	t.Helper()
	var b strings.Builder
	for _, table := range r.Tables() {
		if err := table.Write(&b); err != nil {
			t.Fatal(err)
		}
	}
	if b.Len() == 0 {
		t.Error("nothing for people to read")
	}
}

// Two lone nodes keep their archives in one datastore without namespaces: the
// archives of guest 101 can be either's, those of guest 102 are the other's.
func TestOneBackupServerForTwoClusters(t *testing.T) {
	node := func(name, guests, archives string) map[string]fixtures.Answer {
		return map[string]fixtures.Answer{
			"state": printed("==> /etc/pve/.members <==\n{\"nodename\":\"" + name + "\",\"version\":1}\n\n==> /etc/pve/.vmlist <==\n{\"version\":1,\"ids\":{" + guests + "}}\n\n==> /etc/pve/.rrd <==\n" +
				"pve2-node/" + name + ":86400::1795971290:0.1:4:0.1:0.0:8589934592:4294967296:0:0:100000000000:20000000000:1:1\npve2-storage/" + name + "/pbs:1795971290:1000000000000:1000\n"),
			"guest-configs": printed("/etc/pve/nodes/" + name + "/lxc/101.conf:hostname: a\n/etc/pve/nodes/" + name + "/lxc/102.conf:hostname: b\n"), "pools": {Exit: 1}, "backup-logs": {Exit: 1}, "clock": printed("1795971300.000000000+0000\n"),
			"cluster-configs": printed("/etc/pve/storage.cfg:dir: local\n/etc/pve/storage.cfg:\tpath /var/lib/vz\n/etc/pve/storage.cfg:\tcontent iso\n/etc/pve/storage.cfg:pbs: pbs\n/etc/pve/storage.cfg:\tdatastore main\n/etc/pve/storage.cfg:\tserver PBS.example.org\n/etc/pve/storage.cfg:\tcontent backup\n" +
				"/etc/pve/jobs.cfg:vzdump: nightly\n/etc/pve/jobs.cfg:\tall 1\n/etc/pve/jobs.cfg:\tschedule 02:30\n/etc/pve/jobs.cfg:\tstorage pbs\n"),
			"backups+" + name + "+pbs": printed(archives),
		}
	}
	const archives = `[{"content":"backup","ctime":1795921300,"format":"pbs-ct","size":1073741824,"subtype":"lxc","vmid":101,"volid":"pbs:backup/ct/101/2026-11-29T03:01:40Z"},` +
		`{"content":"backup","ctime":1795921300,"format":"pbs-ct","size":1073741824,"subtype":"lxc","vmid":102,"volid":"pbs:backup/ct/102/2026-11-29T03:01:40Z"}]`
	one := alone("eins", fixtures.DemoClock, node("eins", `"101":{"node":"eins","type":"lxc","version":1}`, archives))
	two := alone("zwei", fixtures.DemoClock, node("zwei", `"101":{"node":"zwei","type":"lxc","version":1},"102":{"node":"zwei","type":"lxc","version":1}`, archives))
	one.Machines = append(one.Machines, two.Machines...)
	r := answer[*report.CoverageList](t, replay(t, one, fixtures.Options{}), "backup_coverage", `{}`)
	got := map[string]string{}
	for _, row := range r.Items {
		got[row.Cluster+"/"+strconv.Itoa(row.VMID)] = row.Verdict
	}
	if d := cmp.Diff(map[string]string{"eins/101": "unknown", "zwei/101": "unknown", "zwei/102": "fresh"}, got); d != "" {
		t.Error(d)
	}
	codes := map[string]int{}
	for _, f := range r.Findings {
		codes[f.Code]++
	}
	if d := cmp.Diff(map[string]int{"PBS_SHARED_NO_NAMESPACE": 2}, codes); d != "" {
		t.Error(d)
	}
	if !r.Complete {
		t.Errorf("incomplete: %v", r.Problems)
	}
}
