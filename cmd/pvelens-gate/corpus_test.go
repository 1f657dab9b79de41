//go:build linux

package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"pvelens/allowlist"
)

// fill returns permitted words of a form on the node pve1.
func fill(f allowlist.Form) []string {
	values := strings.NewReplacer("{vmid}", "101", "{node}", "pve1", "{storage}", "local", "{container}", strings.Repeat("a", 64), "{ip}", "10.0.0.9", "{disk}", "sda")
	words := make([]string, len(f.Argv))
	for i, w := range f.Argv {
		if words[i] = w; !strings.HasPrefix(w, "^") && !strings.HasPrefix(w, `{"`) {
			words[i] = values.Replace(w)
		}
	}
	return words
}

func formLine(t testing.TB, id string) string {
	t.Helper()
	for _, f := range allowlist.Forms() {
		if f.ID != id {
			continue
		}
		c, err := allowlist.Check(allowlist.Both, fill(f)...)
		if err != nil {
			t.Fatal(err)
		}
		return c.Line()
	}
	t.Fatalf("no form %s", id)
	return ""
}

func dockerVersion(t testing.TB) string { return formLine(t, "host-docker-version") }

// hostileLines are the corpus and mutations of lines that are permitted.
func hostileLines(t testing.TB) []string {
	t.Helper()
	b, err := os.ReadFile("../../allowlist/testdata/hostile-commands.json")
	if err != nil {
		t.Fatal(err)
	}
	var c struct{ Hostile []string }
	if err := json.Unmarshal(b, &c); err != nil || len(c.Hostile) < 250 {
		t.Fatalf("%d strings, %v", len(c.Hostile), err)
	}
	own := ownHostile(t)
	if len(own) < 100 {
		t.Fatalf("%d strings of our own", len(own))
	}
	return append(c.Hostile, own...)
}

func ownHostile(t testing.TB) (out []string) {
	for _, id := range []string{"clock", "probe", "pools", "host-docker-version", "sdn-ipam", "gate-version"} {
		line := formLine(t, id)
		for _, tail := range []string{" --", " -- id", " --help", "\n", "\nid", "\r\n", "\x00id", "\x00", ";id", "||id", "&", "\u2028id", "\u00a0", "\xff", "'", "\\", " ''", " \"\"", " ${IFS}id", " <(id)", " 2>&1", "\x1b[0m", "\x04", "\x7f"} {
			out = append(out, line+tail, tail+line)
		}
		out = append(out, "sh -c '"+line+"'", "exec "+line, "time "+line, "! "+line, "( "+line+" )", "{ "+line+"; }", "LC_ALL=C "+line, "BASH_ENV=/dev/stdin "+line,
			strings.Replace(line, "/bin/", "/bin/../bin/", 1), strings.Replace(line, "/bin/", "//bin/", 1), strings.Replace(line, "/bin/", "/bin/./", 1), strings.Replace(line, " ", "\v", 1),
			strings.Replace(line, " ", "\u3000", 1), strings.ToUpper(line), allowlist.GatePath+" "+line, "/usr/bin/sudo -n "+allowlist.GatePath+" "+line, "/usr/bin/timeout -k 2 5 "+line, "'"+strings.ReplaceAll(line, " ", "' '")+"'")
	}
	permitted := map[string]bool{}
	for _, f := range allowlist.Forms() {
		permitted[formLine(t, f.ID)] = true
	}
	var kept []string
	for _, line := range append(out, "/bin/true lock-probe", "/bin/true", "true lock-probe", "/usr/bin/true lock-probe", "/usr/sbin/pct exec ⅽ01 -- df -P -k", "/usr/sbin/pct exec १०१ -- df -P -k", "/usr/sbin/pct exec 𝟏𝟎𝟏 -- df -P -k",
		"/usr/sbin/pct enter 101", "/usr/sbin/pct exec 101 -- df -P -k /", "/usr/sbin/qm guest exec 101 --timeout 10 -- sh", "/usr/sbin/qm list --full 1", "/usr/sbin/qm terminal 101", "/usr/sbin/qm monitor 101",
		"/usr/bin/pvesh --noproxy get /nodes/pve1/lxc/101/config --output-format json", "/usr/bin/pvesh --noproxy set /nodes/pve1/lxc/101/status/current --output-format json", "/usr/bin/pvesh --noproxy get /access/users --output-format json",
		"/usr/bin/tail -v -n +1 /etc/pve/sdn/../priv/shadow.cfg", "/usr/bin/tail -v -n +1 /etc/shadow", "/bin/grep -sE ^pool: /etc/pve/user.cfg", "/bin/grep -sE '' /etc/pve/user.cfg", "/bin/ip -j addr add 10.0.0.9/24 dev lo", "/bin/ip -j -d addr show -batch /dev/stdin",
		"/bin/date -s 2000-01-01", "/bin/date +%s.%N%z -s0", "/bin/echo pvelens-probe > /x", "/sbin/zpool status -p tank", "/sbin/zfs list -Hp -t all", "/usr/bin/journalctl --unit=pvestatd.service --rotate", "scp -t /", "sftp", "rsync --server --sender . /",
		"docker run -v /:/x alpine", "docker exec -it x sh", "docker ps -a --no-trunc --format '{{json .}}'", "podman run x", "-V", "--version", "-D", strings.Repeat("a", 100_000), strings.Repeat("/bin/echo ", 10_000)) {
		if !permitted[line] {
			kept = append(kept, line)
		}
	}
	return kept
}
