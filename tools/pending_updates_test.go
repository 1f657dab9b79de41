package tools

import "testing"

func TestPendingUpdatesGolden(t *testing.T) {
	overScenarios(t, "pending_updates", `{}`, "heimlabor", "pve8-single", "pve74-single", "fresh-single", "mixed-upgrade", "trouble")
}
