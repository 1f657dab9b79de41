package tools

import "pvelens/allowlist"

// An AllowlistRow is one form of the allowlist, for programs.
type AllowlistRow struct {
	ID      string   `json:"id"`
	Role    string   `json:"role"`
	Rights  string   `json:"rights"`
	Effect  string   `json:"effect"`
	Argv    []string `json:"argv"`
	LimitS  int      `json:"limit_s"`
	Cap     int      `json:"cap_bytes"`
	Exits   string   `json:"exits"`
	Reveals string   `json:"reveals"`
	Why     string   `json:"why"`
}

// AllowlistRows returns the whole allowlist, in its order.
func AllowlistRows() []AllowlistRow {
	out := []AllowlistRow{}
	for _, f := range allowlist.Forms() {
		out = append(out, AllowlistRow{f.ID, string(f.Role), string(f.Rights), string(f.Effect), f.Argv, f.Limit, f.Cap, f.Exits(), f.Reveals, f.Why})
	}
	return out
}
