package tools

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pvelens/fixtures"
	"pvelens/fixtures/scenarios"
	"pvelens/tools/parse"
	"pvelens/tools/report"
)

func demoWith(answers map[string]fixtures.Answer) fixtures.Scenario {
	sc := fixtures.Heimlabor()
	sc.Machines[0].Source = instead{sc.Machines[0].Source, answers}
	return sc
}

// verdicts are the backup answers of a stack's mounts.
func verdicts(s *report.Stack) map[string]string {
	out := map[string]string{}
	for _, m := range s.Mounts {
		name := m.Volume
		if name == "" {
			name = m.Source + m.Type
		}
		out[name] = m.InBackup
	}
	return out
}

// Each source that the chain needs is taken away once; without it nothing is in
// a backup.
func TestTheChainNeedsEverySource(t *testing.T) {
	const rootOnly = "701 612 7:1 / /\n"
	yes := map[string]string{"media_dbdata": "yes", "media_jellyfin_config": "yes", "/srv/mediabind": "yes", "tmpfs": "no"}
	all := func(v string) map[string]string {
		return map[string]string{"media_dbdata": v, "media_jellyfin_config": v, "/srv/mediabind": v, "tmpfs": "no"}
	}
	failed := fixtures.Answer{Exit: 255, Stderr: []byte("unable to open file - Permission denied\n")}
	for _, tc := range []struct {
		name    string
		answers map[string]fixtures.Answer
		want    map[string]string
	}{
		{"as recorded", nil, yes},
		{"no mount table", map[string]fixtures.Answer{"lxc-mounts+102": failed}, all("unknown")},
		{"a cut mount table", map[string]fixtures.Answer{"lxc-mounts+102": {Stdout: []byte(rootOnly + "702 701 253:1 /srv")}}, all("unknown")},
		{"docker's root on a bind mount", map[string]fixtures.Answer{"lxc-mounts+102": {Stdout: []byte(rootOnly + "702 701 253:1 /srv/photos /mnt/photos\n703 701 253:1 /srv/photos/docker /var/lib/docker\n")}},
			map[string]string{"media_dbdata": "no", "media_jellyfin_config": "no", "/srv/mediabind": "yes", "tmpfs": "no"}},
		{"one volume is NFS", map[string]fixtures.Answer{"lxc-mounts+102": {Stdout: []byte(rootOnly + "709 701 0:77 / /var/lib/docker/volumes/media_dbdata/_data\n")}},
			map[string]string{"media_dbdata": "no", "media_jellyfin_config": "yes", "/srv/mediabind": "yes", "tmpfs": "no"}},
		{"no jobs, no storages", map[string]fixtures.Answer{"cluster-configs": failed}, all("unknown")},
		{"no pools", map[string]fixtures.Answer{"pools": failed}, all("unknown")},
		{"no vzdump.conf", map[string]fixtures.Answer{"vzdump-defaults": failed}, all("unknown")},
		{"no archive, and storages that were not read", map[string]fixtures.Answer{"backups+pve1+usb-backup": {Stdout: []byte("[]")}}, all("unknown")},
		{"the archives' storage fails", map[string]fixtures.Answer{"backups+pve1+usb-backup": failed}, all("unknown")},
		{"left out by vzdump.conf", map[string]fixtures.Answer{"vzdump-defaults": {Stdout: []byte("exclude-path: /var/lib/docker /srv/media\n")}}, all("no")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			env := replay(t, demoWith(tc.answers), fixtures.Options{})
			s := answer[*report.Stack](t, env, "inspect_compose_stack", `{"guest":"102","project":"media"}`)
			if d := cmp.Diff(tc.want, verdicts(s)); d != "" {
				t.Errorf("in a backup (-want +got):\n%s\n%v", d, s.Problems)
			}
		})
	}
}

// A VM's stack: which disk is not known, so all of them count.
func TestStackInAVM(t *testing.T) {
	unhurried(t)
	env := replay(t, scenarios.Named("docker-zoo"), fixtures.Options{})
	s := answer[*report.Stack](t, env, "inspect_compose_stack", `{"guest":"402","project":"media"}`)
	for _, m := range s.Mounts {
		if m.InBackup != report.BackupNo || m.Type == "volume" && !strings.Contains(m.Reason, "no enabled backup job") {
			t.Errorf("%+v", m)
		}
	}
	golden(t, "docker", "zoo-402-media", s)
}

// A docker host's backups are not known.
func TestStackOnADockerHost(t *testing.T) {
	env := replay(t, scenarios.Named("docker-hosts"), fixtures.Options{})
	s := answer[*report.Stack](t, env, "inspect_compose_stack", `{"host":"nas","project":"media"}`)
	for _, m := range s.Mounts {
		if m.Type != "tmpfs" && m.InBackup != report.BackupUnknown {
			t.Errorf("%+v", m)
		}
	}
	if s.Backup != nil || s.Host != "nas" {
		t.Errorf("%+v", s.Backup)
	}
	golden(t, "docker", "hosts-nas-media", s)
}

// podman-compose's stack, from podman's own forms.
func TestStackOfPodman(t *testing.T) {
	env := replay(t, scenarios.Named("docker-zoo"), fixtures.Options{})
	golden(t, "docker", "zoo-308-stack", answer[*report.Stack](t, env, "inspect_compose_stack", `{"guest":"308","project":"podstack"}`))
}

// Two clusters that write into one place make an archive's owner unknown.
func TestTwoClustersShareANumber(t *testing.T) {
	pbs := parse.StorageConfig{ID: "pbs", Type: "pbs", Server: "pbs.lan", Datastore: "main"}
	other := pbs
	other.ID, other.Namespace = "backup", "b"
	for _, tc := range []struct {
		name   string
		mine   parse.StorageConfig
		theirs parse.StorageConfig
		vmid   int
		want   string
	}{
		{"the same datastore", pbs, pbs, 102, "b"},
		{"a server by name and by address", pbs, parse.StorageConfig{ID: "b", Type: "pbs", Server: "10.0.0.9", Datastore: "main"}, 102, "b"},
		{"a server by its short name", pbs, parse.StorageConfig{ID: "b", Type: "pbs", Server: "PBS", Datastore: "main"}, 102, "b"},
		{"another server", pbs, parse.StorageConfig{ID: "b", Type: "pbs", Server: "pbs2.lan", Datastore: "main"}, 102, ""},
		{"another namespace", pbs, other, 102, ""},
		{"no such guest there", pbs, pbs, 103, ""},
		{"a disk of the node", parse.StorageConfig{ID: "pbs", Type: "dir", Path: "/srv"}, parse.StorageConfig{ID: "pbs", Type: "dir", Path: "/srv"}, 102, ""},
	} {
		a := &cluster{Name: "a", parts: parts{cluster: &parse.ClusterConfigs{Storages: []parse.StorageConfig{tc.mine}}}}
		b := &cluster{Name: "b", State: &parse.State{Guests: []parse.GuestRef{{VMID: 102, Type: "lxc"}}}, parts: parts{cluster: &parse.ClusterConfigs{Storages: []parse.StorageConfig{tc.theirs}}}}
		inv := &inventory{clusters: []*cluster{a, b}}
		if got := inv.sharesNumber(a, "pbs", tc.vmid); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}
