package tools

import "testing"

func TestConfigAuditGolden(t *testing.T) {
	overScenarios(t, "config_audit", `{"limit":500}`, "heimlabor", "noquorum", "pve8-single", "pve74-single", "fresh-single", "mixed-upgrade", "trouble")
}
