package report

import (
	"path"
	"strings"
)

// cleanPath is the shortest form of an absolute path; other text stays.
func cleanPath(p string) string {
	if !strings.HasPrefix(p, "/") {
		return p
	}
	return path.Clean(p)
}

// below reports whether a path is dir or lies below it; both are clean.
func below(p, dir string) bool {
	return p == dir || dir == "/" && strings.HasPrefix(p, "/") || strings.HasPrefix(p, dir+"/")
}
