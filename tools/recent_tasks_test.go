package tools

import "testing"

func TestRecentTasksGolden(t *testing.T) {
	overScenarios(t, "recent_tasks", `{}`, "heimlabor", "pve8-single", "pve74-single", "fresh-single", "trouble")
}
