package parse

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestSmart(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     SMART
	}{
		{"failed only by wear", string(captured(t, "smart-nvme-worn.json")), SMART{
			Device: "/dev/nvme0n1", Protocol: "NVMe", Model: "Example NVMe 512GB", Size: new(int64(512110190592)), Health: DiskFailed, OnlyWear: true,
			Reasons:  []string{"reliability is degraded", "the rated endurance is used up (103 %)"},
			WearLeft: new(0), PercentageUsed: new(103), Spare: new(100), SpareLimit: new(10), MediaErrors: new(int64(0)),
			Temperature: new(int64(38)), PowerOnHours: new(int64(31002)), CriticalBits: new(int64(4)), FailingNow: []string{}, FailedPast: []string{},
		}},
		{"an ATA disk that passed", string(captured(t, "smart-ata.json")), SMART{
			Device: "/dev/sda", Protocol: "ATA", Model: "Example SSD 480GB", Size: new(int64(480103981056)), Health: DiskGood, Reasons: []string{},
			WearLeft: new(88), MediaErrors: new(int64(3)), Reallocated: new(int64(2)), Temperature: new(int64(40)), PowerOnHours: new(int64(20000)),
			FailingNow: []string{}, FailedPast: []string{"Airflow_Temperature_Cel"},
		}},
		{"asleep", string(captured(t, "smart-asleep.json")), SMART{Device: "/dev/sdb", Protocol: "ATA", Asleep: true, Health: DiskUnknown, Reasons: []string{}, FailingNow: []string{}, FailedPast: []string{}}},
		{"behind a RAID controller", `{"smartctl":{"exit_status":2,"messages":[{"string":"/dev/sdc: Unable to detect device type","severity":"error"}]},"device":{"name":"/dev/sdc"}}`, SMART{Device: "/dev/sdc", Unreadable: true, Health: DiskUnknown, Reasons: []string{}, FailingNow: []string{}, FailedPast: []string{}}},
		{"SCSI", `{"smartctl":{"exit_status":0},"device":{"name":"/dev/sdd","protocol":"SCSI"},"scsi_model_name":"S 1","rotation_rate":7200,"smart_status":{"passed":true},"scsi_grown_defect_list":4,"scsi_percentage_used_endurance_indicator":7,"scsi_error_counter_log":{"read":{"total_uncorrected_errors":2},"write":{"total_uncorrected_errors":0}}}`, SMART{
			Device: "/dev/sdd", Protocol: "SCSI", Model: "S 1", RPM: new(int64(7200)), Health: DiskGood, Reasons: []string{}, WearLeft: new(93), PercentageUsed: new(7), MediaErrors: new(int64(2)), Reallocated: new(int64(4)), FailingNow: []string{}, FailedPast: []string{},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, notes, err := Smart([]byte(tc.in))
			wantError(t, err, "")
			diff(t, []Note{}, notes)
			diff(t, tc.want, got)
			if all, _ := json.Marshal(got); strings.Contains(string(all), "NEVER-SHOWN") {
				t.Error("the serial number is in the answer")
			}
		})
	}
}

func TestSmartFailures(t *testing.T) {
	nvme := func(log string) string {
		return `{"smartctl":{"exit_status":8},"smart_status":{"passed":false},"nvme_smart_health_information_log":` + log + `}`
	}
	for _, tc := range []struct {
		name, in string
		onlyWear bool
		reasons  []string
	}{
		{"wear and media errors", nvme(`{"critical_warning":4,"percentage_used":101,"available_spare":100,"available_spare_threshold":10,"media_errors":5}`), false, []string{"reliability is degraded", "the rated endurance is used up (101 %)", "5 media errors"}},
		{"spare used up", nvme(`{"critical_warning":1,"percentage_used":20,"available_spare":5,"available_spare_threshold":10,"media_errors":0}`), false, []string{"spare blocks are below their limit"}},
		{"degraded, little used", nvme(`{"critical_warning":4,"percentage_used":20,"media_errors":0}`), false, []string{"reliability is degraded"}},
		{"read-only and worn", nvme(`{"critical_warning":12,"percentage_used":120,"media_errors":0}`), false, []string{"reliability is degraded", "the disk is read-only", "the rated endurance is used up (120 %)"}},
		{"an ATA wear attribute", `{"smartctl":{},"smart_status":{"passed":false},"ata_smart_attributes":{"table":[{"id":202,"name":"Percent_Lifetime_Remain","value":0,"when_failed":"now"},{"id":197,"name":"Current_Pending_Sector","raw":{"value":0}}]}}`, true, []string{"attribute Percent_Lifetime_Remain is below its limit"}},
		{"another ATA attribute", `{"smartctl":{},"smart_status":{"passed":false},"ata_smart_attributes":{"table":[{"id":5,"name":"Reallocated_Sector_Ct","value":1,"when_failed":"now","raw":{"value":4000}},{"id":197,"raw":{"value":0}}]}}`, false, []string{"attribute Reallocated_Sector_Ct is below its limit"}},
		{"no reason told", `{"smartctl":{},"smart_status":{"passed":false}}`, false, []string{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, _, err := Smart([]byte(tc.in))
			wantError(t, err, "")
			diff(t, []any{DiskFailed, tc.onlyWear, tc.reasons}, []any{got.Health, got.OnlyWear, got.Reasons})
		})
	}
}

func TestSmartBadInput(t *testing.T) {
	for _, tc := range []struct{ name, in, err string }{
		{"nothing", "", "smartctl: want a JSON object, got nothing"},
		{"text", "smartctl 7.4 2024-10-15\nSMART overall-health", "got something else at byte"},
		{"half", `{"smartctl":{`, "got something else at byte"},
		{"another JSON", `{"a":1}`, `want "smartctl" in its JSON`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, _, err := Smart([]byte(tc.in))
			wantError(t, err, tc.err)
		})
	}
}

// Law: nobody is called worn or failed who was not asked, and wear alone is
// never said beside media errors.
func FuzzSmart(f *testing.F) {
	for _, name := range []string{"smart-nvme-worn.json", "smart-ata.json", "smart-asleep.json"} {
		f.Add(captured(f, name))
	}
	for _, g := range garbage {
		f.Add([]byte(g))
	}
	f.Fuzz(func(t *testing.T, out []byte) {
		s, _, err := Smart(out)
		if err != nil {
			return
		}
		if s.Asleep && (s.Health != DiskUnknown || s.WearLeft != nil || s.Unreadable) {
			t.Fatalf("a sleeping disk says %+v", s)
		}
		if s.OnlyWear && (s.Health != DiskFailed || *s.MediaErrors > 0) || s.WearLeft != nil && (*s.WearLeft < 0 || *s.WearLeft > 100) {
			t.Fatalf("%+v", s)
		}
	})
}
