package parse

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestDisksWearout(t *testing.T) {
	disks, notes, err := Disks(captured(t, "disks-wearout.json"))
	wantError(t, err, "")
	diff(t, []Note{}, notes)
	got := []string{}
	for _, d := range disks {
		left, rpm := "-", "-"
		if d.WearLeft != nil {
			left = fmt.Sprint(*d.WearLeft)
		}
		if d.RPM != nil {
			rpm = fmt.Sprint(*d.RPM)
		}
		got = append(got, fmt.Sprintf("%s %s %s left=%s use=%s rpm=%s", d.Name, d.Type, d.Health, left, d.Use, rpm))
	}
	diff(t, []string{
		"nvme0n1 nvme good left=85 use=ZFS rpm=-", "nvme1n1 nvme good left=0 use=ZFS rpm=-", "sda ssd good left=- use=LVM rpm=-",
		"sdb hdd good left=- use=ZFS rpm=7200", "sdc ssd good left=0 use= rpm=-", "sdd usb unknown left=- use=mounted rpm=-",
	}, got)
	all, err := json.Marshal(disks)
	if err != nil || strings.Contains(string(all), `"S1"`) || strings.Contains(string(all), "eui.1") {
		t.Error("a serial number is in the answer")
	}
}

func TestDisks(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     []PhysicalDisk
		notes    []string
		err      string
	}{
		{"recorded", string(captured(t, "disks-pve9.json")), []PhysicalDisk{{Path: "/dev/vda", Type: "unknown", Vendor: "0x1af4", Size: new(int64(274877906944)), Use: "mounted", Health: DiskUnknown}}, []string{}, ""},
		{"failed, worn text, hdd", `[{"devpath":"/dev/sdb","type":"ssd","health":"FAILED!","wearout":"12","size":"5"},{"devpath":"/dev/sda","type":"hdd","health":"OK","wearout":100}]`, []PhysicalDisk{{Path: "/dev/sda", Name: "sda", Type: "hdd", Health: DiskGood}, {Path: "/dev/sdb", Name: "sdb", Type: "ssd", Health: DiskFailed, WearLeft: new(12), Size: new(int64(5))}}, []string{}, ""},
		{"no path", `[{"devpath":"sda"},{"size":"x","devpath":"/dev/sda"}]`, []PhysicalDisk{{Path: "/dev/sda", Name: "sda", Health: DiskUnknown}}, []string{"line 1: devpath: want a path under /dev", "line 2: size: want a whole number"}, ""},
		{"none", "[]", []PhysicalDisk{}, []string{}, ""},
		{"nothing", "", nil, nil, "disks: want a JSON array of objects, got nothing"},
		{"half", `[{"devpath`, nil, nil, "got something else at byte"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, notes, err := Disks([]byte(tc.in))
			wantError(t, err, tc.err)
			diff(t, tc.want, got)
			if err == nil {
				diff(t, tc.notes, noteTexts(notes))
			}
		})
	}
}

func TestDiskName(t *testing.T) {
	for path, want := range map[string]string{
		"/dev/sda": "sda", "/dev/sdzzz": "sdzzz", "/dev/sdaaaa": "", "/dev/sda1": "", "/dev/nvme0n1": "nvme0n1", "/dev/nvme0n1p1": "", "/dev/nvme0": "", "/dev/sd": "", "/dev/vda": "", "/dev/../sda": "",
	} {
		if got := diskName(path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}

// Law: what is left is a percentage, and only solid disks have it.
func FuzzDisksAndCertificates(f *testing.F) {
	f.Add(captured(f, "disks-wearout.json"))
	f.Add(captured(f, "certificates.json"))
	for _, g := range garbage {
		f.Add([]byte(g))
	}
	f.Fuzz(func(t *testing.T, out []byte) {
		disks, _, _ := Disks(out)
		for _, d := range disks {
			if d.WearLeft != nil && (*d.WearLeft < 0 || *d.WearLeft > 100 || d.Type == "hdd") {
				t.Fatalf("%s: %d %% left", d.Type, *d.WearLeft)
			}
			if d.Name != "" && d.Path != "/dev/"+d.Name {
				t.Fatalf("%q is no name of %q", d.Name, d.Path)
			}
		}
		certificates, _, err := Certificates(out)
		for _, c := range certificates {
			if err != nil || c.File == "" || c.Names == nil {
				t.Fatal("a certificate without a file")
			}
		}
	})
}
