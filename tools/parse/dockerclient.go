package parse

import (
	"errors"
	"strings"
)

// DockerClient reads docker --version (20.10 to 29), which asks no daemon:
//
//	Docker version 28.2.2, build e6534b4
//	podman version 4.3.1
//
// The program is podman where it answers under docker's name.
func DockerClient(out []byte) (program, version string, err error) {
	for line := range strings.Lines(string(out)) {
		name, rest, ok := strings.Cut(strings.TrimSpace(line), " version ")
		name = strings.ToLower(name)
		if !ok || name != "docker" && name != "podman" {
			continue
		}
		version, _, _ = strings.Cut(rest, ",")
		return name, strings.TrimSpace(version), nil
	}
	return "", "", errors.New("docker --version: want NAME version NUMBER")
}
