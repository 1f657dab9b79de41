package parse

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

type dockerCall struct {
	Name, Program  string
	Exit           int
	Stdout, Stderr string
	Want           DockerTrouble
}

func recordedFailures(t testing.TB) []dockerCall {
	t.Helper()
	var calls []dockerCall
	for line := range bytes.Lines(captured(t, "docker-failures.ndjson")) {
		var c dockerCall
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		calls = append(calls, c)
	}
	return calls
}

func TestClassifyDockerRecorded(t *testing.T) {
	for _, c := range recordedFailures(t) {
		t.Run(c.Name, func(t *testing.T) {
			diff(t, c.Want, ClassifyDocker(c.Program, c.Exit, []byte(c.Stdout), []byte(c.Stderr)).Trouble)
		})
	}
}

func TestClassifyDocker(t *testing.T) {
	f := strings.Repeat("f", 64)
	for _, tc := range []struct {
		name, program  string
		exit           int
		stdout, stderr string
		want           DockerFailure
	}{
		{"docker 29 on a missing socket", "docker", 1, "", "failed to connect to the docker API at unix:///var/run/docker.sock; check if the path is correct and if the daemon is running: dial unix /var/run/docker.sock: connect: no such file or directory", DockerFailure{DockerStopped, []string{}}},
		{"docker 29 over tcp", "docker", 1, "", "failed to connect to the docker API at tcp://10.0.0.1:2375: dial tcp: i/o timeout", DockerFailure{DockerUnreachable, []string{}}},
		{"the shim with exit 0", "docker", 0, "", "Emulate Docker CLI using podman. Create /etc/containers/nodocker to quiet msg.\n", DockerFailure{DockerIsPodman, []string{}}},
		{"the quiet shim", "docker", 125, `{"id":"1a","project":`, "", DockerFailure{DockerIsPodman, []string{}}},
		{"podman's own template error", "podman", 125, "", `Error: template: ps:1:230: executing "ps" at <.Label>: can't evaluate field Label in type containers.psReporter`, DockerFailure{DockerBadTemplate, []string{}}},
		{"two IDs are gone, one twice", "docker", 1, "", "Error: No such container: " + f + "\nError: No such container: " + strings.Repeat("0", 64) + "\nError: No such container: " + f + "\n", DockerFailure{DockerVanished, []string{f, strings.Repeat("0", 64)}}},
		{"a daemon that died half way is not a vanished container", "docker", 1, "", "Error response from daemon: No such container: " + f + "\nCannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?", DockerFailure{DockerStopped, []string{}}},
		{"what vanished is no ID", "docker", 1, "", "Error: No such container: ../info", DockerFailure{DockerOther, []string{}}},
		{"the guest agent finds no docker", "docker", 255, "", "Agent error: Guest agent command failed, error was 'Failed to execute child process “docker” (No such file or directory)'", DockerFailure{DockerAbsent, []string{}}},
		{"LXC in another language", "docker", 127, "", "lxc-attach: 107: attach.c: 9 Datei oder Verzeichnis nicht gefunden", DockerFailure{DockerAbsent, []string{}}},
		{"pct itself is missing", "docker", 127, "", "/usr/bin/timeout: failed to run command '/usr/sbin/pct': No such file or directory", DockerFailure{DockerOther, []string{}}},
		{"a docker host without docker", "docker", 127, "", "/usr/bin/timeout: failed to run command 'docker': No such file or directory", DockerFailure{DockerAbsent, []string{}}},
		{"a docker host whose docker is another's", "docker", 126, "", "/usr/bin/timeout: failed to run command 'docker': Permission denied", DockerFailure{DockerDenied, []string{}}},
		{"not executable, in another language", "docker", 126, "", "lxc-attach: 107: attach.c: 9 Keine Berechtigung", DockerFailure{DockerDenied, []string{}}},
		{"sudo without docker", "docker", 1, "", "sudo: docker: command not found", DockerFailure{DockerAbsent, []string{}}},
		{"sudo with a password", "docker", 1, "", "sudo: a password is required", DockerFailure{DockerDenied, []string{}}},
		{"a guest that moved away", "docker", 255, "", "Configuration file 'nodes/pve1/lxc/999.conf' does not exist", DockerFailure{DockerGuestMissing, []string{}}},
		{"a stopped VM", "docker", 255, "", "VM 201 is not running", DockerFailure{DockerGuestStopped, []string{}}},
		{"a plugin's warning decides nothing", "docker", 1, "", "WARNING: Plugin \"/usr/libexec/docker/cli-plugins/x\" is not valid: sh: x: command not found\nCannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?", DockerFailure{DockerStopped, []string{}}},
		{"only warnings", "docker", 1, "", "WARNING: Error loading config file: /root/.docker/config.json: permission denied", DockerFailure{DockerOther, []string{}}},
		{"silence", "docker", 1, "", "", DockerFailure{DockerOther, []string{}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			diff(t, tc.want, ClassifyDocker(tc.program, tc.exit, []byte(tc.stdout), []byte(tc.stderr)))
		})
	}
}

// Law: exit 0 of podman is whole, any other exit is a trouble, and only what is
// called vanished names IDs.
func FuzzClassifyDocker(f *testing.F) {
	for _, c := range recordedFailures(f) {
		f.Add(c.Exit, c.Stdout, c.Stderr)
	}
	f.Fuzz(func(t *testing.T, exit int, stdout, stderr string) {
		for _, program := range []string{"docker", "podman"} {
			got := ClassifyDocker(program, exit, []byte(stdout), []byte(stderr))
			if exit != 0 && got.Trouble == DockerOK || exit == 0 && program == "podman" && got.Trouble != DockerOK {
				t.Fatalf("%s exit %d: %q", program, exit, got.Trouble)
			}
			if (len(got.Missing) > 0) != (got.Trouble == DockerVanished) || got.Missing == nil {
				t.Fatalf("%s: %q with %d IDs", program, got.Trouble, len(got.Missing))
			}
			if program == "podman" && got.Trouble == DockerIsPodman {
				t.Fatal("podman is podman")
			}
		}
	})
}
