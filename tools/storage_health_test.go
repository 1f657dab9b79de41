package tools

import "testing"

func TestStorageHealthGolden(t *testing.T) {
	overScenarios(t, "storage_health", `{}`, "heimlabor", "pve8-single", "pve74-single", "fresh-single", "trouble")
}
