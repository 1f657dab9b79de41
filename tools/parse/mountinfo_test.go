package parse

import (
	"strings"
	"testing"
)

func TestGuestMounts(t *testing.T) {
	const in = "701 612 253:7 / /\n702 701 253:1 /srv/two\\040words /mnt/two\\040words\n703 701 0:61 / /dev\n704 701 0:4 net:[4026533321] /run/docker/netns/1-abc\n"
	got, notes, err := GuestMounts([]byte(in))
	wantError(t, err, "")
	diff(t, []GuestMount{
		{"253:7", "/", "/"}, {"253:1", "/srv/two words", "/mnt/two words"}, {"0:61", "/", "/dev"}, {"0:4", "net:[4026533321]", "/run/docker/netns/1-abc"},
	}, got)
	if len(notes) != 0 {
		t.Errorf("notes: %v", notes)
	}
}

func TestGuestMountsBroken(t *testing.T) {
	got, notes, err := GuestMounts([]byte("701 612 253:7 / /\n702 701 253:1\n"))
	wantError(t, err, "")
	diff(t, []GuestMount{{"253:7", "/", "/"}}, got)
	diff(t, []string{"line 2: want ID PARENT MAJOR:MINOR ROOT TARGET"}, noteTexts(notes))
	for _, in := range garbage {
		if got, _, err := GuestMounts([]byte(in)); err == nil && len(got) > 0 {
			t.Errorf("%q is %v", in, got)
		}
	}
}

func TestDockerClient(t *testing.T) {
	for _, tc := range []struct{ in, program, version, err string }{
		{"Docker version 20.10.24+dfsg1, build 297e128\n", "docker", "20.10.24+dfsg1", ""},
		{"Docker version 29.0.0, build 3d4129b\n", "docker", "29.0.0", ""},
		{"podman version 4.3.1\n", "podman", "4.3.1", ""},
		{"a banner\nDocker version 27.5.1, build 9f9e405\n", "docker", "27.5.1", ""},
		{"git version 2.1\n", "", "", "want NAME version NUMBER"},
		{"", "", "", "want NAME version NUMBER"},
	} {
		program, version, err := DockerClient([]byte(tc.in))
		wantError(t, err, tc.err)
		if program != tc.program || version != tc.version {
			t.Errorf("%q: %q %q", tc.in, program, version)
		}
	}
}

// Law: what is read has a place, and every line is either a mount or a note.
func FuzzGuestMounts(f *testing.F) {
	f.Add("701 612 253:7 / /\n")
	f.Add("x\n701 612 253:7 / relative\n")
	f.Fuzz(func(t *testing.T, in string) {
		got, notes, err := GuestMounts([]byte(in))
		if err != nil {
			return
		}
		lines := 0
		for line := range strings.Lines(in) {
			if strings.TrimSpace(line) != "" {
				lines++
			}
		}
		if len(got)+len(notes) != lines {
			t.Errorf("%d mounts and %d notes of %d lines", len(got), len(notes), lines)
		}
		for _, m := range got {
			if !strings.HasPrefix(m.Target, "/") {
				t.Errorf("mount at %q", m.Target)
			}
		}
	})
}
