package tools

import (
	"context"

	"pvelens/tools/report"
)

type listGuestContainersIn struct {
	Common
	Paged
	Guest   Text   `json:"guest,omitempty" help:"guest; default: all running ones and docker hosts" pos:"true"`
	Host    string `json:"host,omitempty" help:"docker host of the profile"`
	State   string `json:"state,omitempty" help:"state" enum:"created,running,paused,restarting,stopping,removing,exited,dead"`
	Health  string `json:"health,omitempty" help:"health of running ones; none: no check" enum:"healthy,unhealthy,starting,none"`
	Project string `json:"project,omitempty" help:"Compose project"`
	Name    string `json:"name,omitempty" help:"text in the name"`
	Image   string `json:"image,omitempty" help:"text in the image"`
}

var listGuestContainers = define("list_guest_containers", "List containers inside guests",
	"Lists Docker and podman containers in running LXC guests, VMs (by agent) and on docker hosts: state, health, image, ports, Compose project. places: only status ok means the list is whole there. Starts no daemon. detailed adds image IDs, restarts, policy, networks, mounts.",
	func(_ context.Context, s *Session, in listGuestContainersIn) (*report.ContainerList, error) {
		places, _, err := s.dockerPlaces(in.Guest, in.Host)
		if err != nil {
			return nil, err
		}
		answers := s.askDocker(places, s.Detailed, nil)
		s.learnProjects(answers)
		out := &report.ContainerList{Places: report.Places(answers)}
		filter := report.ContainerFilter{State: in.State, Health: in.Health, Project: in.Project, Name: in.Name, Image: in.Image}
		answers = filter.Keep(answers)
		out.Findings = report.Findings(s.judge().ContainerFindings(answers)...)
		out.Items, out.Page = report.Cut(report.Containers(answers), in.Offset, in.Limit)
		if !s.Detailed {
			report.Brief(out.Items)
		}
		s.fit(out, in.Limit,
			func() bool { return report.Drop(&out.Findings, &out.MoreFindings, 5) },
			out.FoldPlaces,
			func() bool { return len(out.Items) > 8 && report.Shorten(&out.Items, &out.Page, in.Offset) },
			func() bool { return report.Drop(&out.Places, &out.MorePlaces, 10) },
			func() bool { return report.Shorten(&out.Items, &out.Page, in.Offset) })
		return out, nil
	})

// learnProjects keeps the names of Compose projects for completions.
func (s *Session) learnProjects(answers []report.RuntimeAnswer) {
	var all []known
	for _, c := range report.Containers(answers) {
		if c.Project != "" {
			all = append(all, known{"project", c.Project})
		}
	}
	if all != nil {
		s.learn("project", all)
	}
}
