package tools

import (
	"testing"

	"pvelens/fixtures"
	"pvelens/fixtures/scenarios"
	"pvelens/tools/report"
)

func TestStorageHealthGolden(t *testing.T) {
	overScenarios(t, "storage_health", `{}`, "heimlabor", "pve8-single", "pve74-single", "fresh-single", "trouble")
}

func TestStorageHealthFilters(t *testing.T) {
	env := patient(t, replay(t, scenarios.Named("trouble"), fixtures.Options{}))
	r := answer[*report.StorageHealth](t, env, "storage_health", `{"node":"w1","kind":"zpool"}`)
	if r.Total != 1 || r.Items[0].Name != "tank" || r.Health != report.HealthCritical {
		t.Errorf("got %+v", r.Items)
	}
	ran := forms(t, env)
	for _, form := range []string{"lvs", "disks", "smart", "node-df"} {
		if ran[form] > 0 {
			t.Errorf("%s was run for pools alone", form)
		}
	}
}

// Where a pool is suspended, zpool and zfs are not run at all: they might hang.
func TestSuspendedPoolIsNotAsked(t *testing.T) {
	env := patient(t, replay(t, scenarios.Named("trouble"), fixtures.Options{}))
	r := answer[*report.StorageHealth](t, env, "storage_health", `{"node":"w2","kind":"zpool"}`)
	if ran := forms(t, env); ran["zpool-status"]+ran["zpool-list"]+ran["zfs-list"] > 0 {
		t.Errorf("ran %v", ran)
	}
	states := map[string]string{}
	for _, x := range r.Items {
		states[x.Name] = x.State
	}
	if states["old"] != report.HealthCritical || states["tank"] != report.Unknown || r.Complete {
		t.Errorf("got %v, complete %v", states, r.Complete)
	}
}

// A lone node without ZFS and LVM is not asked for either.
func TestStorageHealthAsksOnlyWhatIsThere(t *testing.T) {
	env := patient(t, replay(t, scenarios.Named("pve8-single"), fixtures.Options{}))
	if _, err := call(t, env, "storage_health", `{}`); err != nil {
		t.Fatal(err)
	}
	if ran := forms(t, env); ran["zpool-status"] > 0 || ran["zpool-list"] > 0 {
		t.Errorf("ran %v", ran)
	}
}
