package tools

import (
	"slices"
	"strings"

	"pvelens/tools/parse"
	"pvelens/tools/report"
)

// dockerPlaces are the places that an argument names: one guest, one docker
// host, or every running guest and every docker host. inv is nil where no
// cluster is needed.
func (s *Session) dockerPlaces(guest Text, host string) (places []*dockerPlace, inv *inventory, err error) {
	switch {
	case guest != "" && host != "":
		return nil, nil, errorf(report.InvalidArgument, "give guest or host, not both")
	case host != "":
		p, err := s.dockerHost(host)
		return []*dockerPlace{p}, nil, err
	}
	if len(s.nodes) > 0 {
		if inv, err = s.inventory(needConfigs | needPools | needCluster | needLive); err != nil && (guest != "" || len(s.dockers) == 0) {
			return nil, nil, err
		}
		s.miss("", err)
	} else if guest != "" || len(s.dockers) == 0 {
		return nil, nil, errorf(report.Config, "profile %s has no nodes", s.Profile.Name).hint("add nodes = [\"HOST\"] to the profile")
	}
	if guest != "" {
		g, err := inv.find(guest)
		if err != nil {
			return nil, nil, err
		}
		return []*dockerPlace{newDockerPlace(g)}, inv, nil
	}
	if inv != nil {
		places = s.runningGuests(inv)
	}
	for _, e := range s.dockers {
		places = append(places, newDockerHost(e))
	}
	return places, inv, nil
}

func (s *Session) dockerHost(name string) (*dockerPlace, error) {
	var names []string
	for _, e := range s.dockers {
		if strings.EqualFold(e.dest, name) || strings.EqualFold(shortName(e.dest), name) {
			return newDockerHost(e), nil
		}
		names = append(names, e.dest)
	}
	if names == nil {
		return nil, errorf(report.NotFound, "profile %s has no docker_hosts", s.Profile.Name).hint("add docker_hosts = [%q] to the profile; a guest of Proxmox is asked with guest", name)
	}
	return nil, errorf(report.NotFound, "no docker host named %s", name).hint("docker_hosts are: %s", strings.Join(names, ", "))
}

func newDockerHost(e *entry) *dockerPlace {
	p := &dockerPlace{entry: e}
	p.Place = report.ContainerPlace{Where: report.Where{Host: e.dest}, Type: "host"}
	return p
}

func newDockerPlace(g *place) *dockerPlace {
	p := &dockerPlace{guest: g}
	p.Place = report.ContainerPlace{Where: report.Where{Guest: g.VMID, GuestName: g.Name, Cluster: g.Cluster}, Type: g.Type, Node: g.Node}
	if g.Type == "lxc" && g.config != nil {
		p.Nesting = report.Ptr(nesting(g.config.Current))
	}
	return p
}

// nesting reports whether a container may run containers: by its feature, by
// the raw key behind it, or because nothing confines it.
func nesting(c parse.GuestSettings) bool {
	raw := slices.ContainsFunc(c.Raw.Lines, func(o parse.Option) bool { return o.Key == "lxc.apparmor.allow_nesting" && o.Value == "1" })
	return raw || c.Raw.AppArmorProfile == "unconfined" || c.Features != nil && c.Features.Nesting
}

// runningGuests are the guests that may have containers now: those that run,
// and those of which nobody knows although their node is there.
func (s *Session) runningGuests(inv *inventory) []*dockerPlace {
	var out []*dockerPlace
	for _, c := range inv.clusters {
		s.offlineNodes(c, "")
		for _, g := range report.Guests(c.view(inv), false) {
			if g.Template || g.Status == report.Stopped || report.Offline(c.State, g.Node) {
				continue
			}
			out = append(out, newDockerPlace(&place{Guest: g, cluster: c, config: c.config(g.VMID)}))
		}
	}
	return out
}
