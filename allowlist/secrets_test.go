package allowlist

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const plantedRoot = "testdata/root"

// runOnRoot runs the words of a grep or tail form on the files of the planted
// root; a file that the root does not have is left to the program to miss.
func runOnRoot(t *testing.T, words []string) string {
	t.Helper()
	args := slices.Clone(words[1:])
	for i, a := range args {
		if strings.HasPrefix(a, "/") {
			args[i] = plantedRoot + a
		}
	}
	cmd := exec.Command(words[0], args...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8"}
	out, err := cmd.Output()
	if _, ok := err.(*exec.ExitError); err != nil && !ok {
		t.Fatal(err)
	}
	return string(out)
}

// What is planted in files with secrets never comes out of a form that reads
// them; what is wanted of the same files does.
func TestSecretsStayOnTheNode(t *testing.T) {
	want := map[string][]string{
		"guest-configs":   {"cipassword:\n", "sshkeys:\n", "args:\n", "env:\n", "description:\n", "[PENDING]\n", "lxc.mount.entry: //nas/share mnt/share cifs\n", "lxc.environment.runtime =\n", "lxc.apparmor.profile = unconfined\n", "lxc/102.conf:memory: 64\n"},
		"lxc-config":      {"hostname: media\n", "entrypoint:\n"},
		"qemu-config":     {"name: web\n", "smbios1:\n"},
		"cluster-configs": {"dir: local\n", "\tserver 10.0.0.5\n", "truenas: nas\n", "\tschedule 21:00\n", "gpu-t400\n"},
		"ha-state":        {"master_node", "wait_for_agent_lock"},
		"pools":           {"pool:prod:production:101,200:local:\n"},
		"corosync":        {"cluster_name: heimlabor\n", "ring0_addr: 10.0.0.1\n", "host: 10.0.0.7\n"},
		"datacenter":      {"migration: type=secure,network=10.0.0.0/24\n"},
		"vzdump-defaults": {"storage: local\n"},
		"startup-delay":   {"startall-onboot-delay: 30\n"},
		"sdn":             {"\tgateway 10.0.0.1\n", "\ttag 10\n"},
		"sdn-ipam":        {"zones"},
		"apt-repos":       {"download.proxmox.com/debian/pve bookworm pve-no-subscription\n", "URIs: https://enterprise.proxmox.com/debian/pve\n", "Suites: trixie\n"},
		"mounts":          {"//10.0.0.5/backup /mnt/pve/share cifs rw\n"},
		"backup-logs":     {"INFO: Starting Backup of VM 200 (qemu)\n", "archive file size: 1.00GB\n"},
	}
	for _, f := range forms {
		if f.Argv[0] != "/bin/grep" && f.Argv[0] != "/usr/bin/tail" {
			continue
		}
		t.Run(f.ID, func(t *testing.T) {
			words := fill(f.Argv, 0)
			for i := range words {
				words[i] = strings.NewReplacer("lxc/100.conf", "lxc/101.conf", "qemu-server/100.conf", "qemu-server/200.conf").Replace(words[i])
			}
			if _, err := Check(hostRole(f), words...); err != nil {
				t.Fatal(err)
			}
			got := runOnRoot(t, words)
			for line := range strings.Lines(got) {
				if strings.Contains(line, "SECRET") {
					t.Errorf("sends %q", line)
				}
			}
			for _, w := range want[f.ID] {
				if !strings.Contains(got, w) {
					t.Errorf("does not send %q:\n%s", w, got)
				}
			}
			delete(want, f.ID)
		})
	}
	for id := range want {
		t.Errorf("%s: no such form reads the root", id)
	}
}

// The law above says something only while the secrets are in the files.
func TestSecretsArePlanted(t *testing.T) {
	planted := 0
	err := filepath.WalkDir(plantedRoot, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		planted += bytes.Count(b, []byte("SECRET"))
		return err
	})
	if err != nil || planted < 70 {
		t.Errorf("%d secrets planted, %v", planted, err)
	}
}
