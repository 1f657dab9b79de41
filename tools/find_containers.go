package tools

import (
	"context"

	"pvelens/tools/report"
)

type findContainersIn struct {
	Common
	Paged
	Text     string `json:"text,omitempty" help:"in name, image, project or service; a number: port too" pos:"true"`
	Name     string `json:"name,omitempty" help:"text in the name"`
	Image    string `json:"image,omitempty" help:"text in the image"`
	Project  string `json:"project,omitempty" help:"Compose project"`
	Port     int    `json:"port,omitempty" help:"published port" min:"1" max:"65535"`
	Protocol string `json:"protocol,omitempty" help:"of the port" enum:"tcp,udp,sctp"`
}

var findContainers = define("find_containers", "Find containers",
	"Finds containers over all running guests and docker hosts: where does jellyfin run, who listens on 8080. cannot_tell names containers on the guest's own network, not_searched guests whose containers are not known.",
	func(_ context.Context, s *Session, in findContainersIn) (*report.FoundContainers, error) {
		q := report.ContainerSearch{Text: in.Text, Name: in.Name, Image: in.Image, Project: in.Project, Port: in.Port, Protocol: in.Protocol}
		if q == (report.ContainerSearch{Protocol: in.Protocol}) {
			return nil, errorf(report.InvalidArgument, "say what to find: text, name, image, project or port")
		}
		places, _, err := s.dockerPlaces("", "")
		if err != nil {
			return nil, err
		}
		answers := s.askDocker(places, false, nil)
		s.learnProjects(answers)
		out := q.Find(answers)
		out.Items, out.Page = report.Cut(out.Items, in.Offset, in.Limit)
		if !s.Detailed {
			out.Brief()
		}
		s.fit(out, in.Limit, func() bool { return report.Shorten(&out.Items, &out.Page, in.Offset) })
		return out, nil
	})
