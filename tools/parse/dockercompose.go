package parse

import (
	"path"
	"slices"
	"strings"
)

// Compose says which project a container belongs to, from its labels.
type Compose struct {
	Project     string
	Service     string
	Number      *int // 1..N of a scaled service
	OneOff      bool // made by "compose run", not part of "up"
	ConfigFiles []string
	WorkingDir  string
	Version     string
	DependsOn   []Dependency
}

// A Dependency is one entry of a service's depends_on, in the order of service.
type Dependency struct {
	Service   string
	Condition string // service_started, service_healthy, service_completed_successfully; "" in old labels
	Restart   bool
}

func psCompose(o jsonObject) *Compose {
	return newCompose(o, "compose_version", "")
}

// newCompose reads the labels of one project. podman-compose 1.x sets its own
// label beside Compose's, so that is asked only when the other is empty.
func newCompose(o jsonObject, version, podmanProject string) *Compose {
	c := Compose{
		Project: o.text("project"), Service: o.text("service"), WorkingDir: o.text("working_dir"),
		Version: o.text(version), OneOff: strings.EqualFold(o.text("oneoff"), "true"),
	}
	if c.Project == "" && podmanProject != "" {
		c.Project = o.text(podmanProject)
	}
	if c.Project == "" {
		return nil
	}
	if s := o.text("number"); s != "" {
		c.Number = smallInt(positive(parseInt(s)))
	}
	c.ConfigFiles = configFiles(c.WorkingDir, o.text("config_files"))
	c.DependsOn = dependencies(o.text("depends_on"))
	return &c
}

// configFiles splits at commas and makes relative paths absolute: Compose 1 and
// podman-compose write them relative to the working directory.
func configFiles(dir, files string) []string {
	out := []string{}
	for _, f := range splitFields(files, ",") {
		windows := strings.Contains(f, `:\`) || strings.HasPrefix(f, `\\`)
		if !path.IsAbs(f) && path.IsAbs(dir) && f != "-" && !windows {
			f = path.Join(dir, f)
		}
		out = append(out, f)
	}
	return out
}

// dependencies reads "db:service_healthy:false,cache:service_started:true".
func dependencies(label string) []Dependency {
	out := []Dependency{}
	for _, part := range splitFields(label, ",") {
		f := strings.Split(part, ":")
		d := Dependency{Service: f[0]}
		if len(f) > 1 {
			d.Condition = f[1]
		}
		if len(f) > 2 {
			d.Restart = strings.EqualFold(f[2], "true")
		}
		out = append(out, d)
	}
	slices.SortStableFunc(out, func(a, b Dependency) int { return strings.Compare(a.Service, b.Service) })
	return out
}
