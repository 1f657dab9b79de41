package tools

import (
	"bytes"
	"context"
	"fmt"

	"pvelens/tools/parse"
	"pvelens/tools/report"
)

// GuestIn is the argument that names one guest.
type GuestIn struct {
	Guest Text `json:"guest" help:"VMID, exact name, or CLUSTER/VMID" required:"true" pos:"true"`
}

type getGuestConfigIn struct {
	Common
	GuestIn
}

var getGuestConfig = define("get_guest_config", "Show a guest's configuration",
	"Shows one guest's configuration as it holds now, with pending changes apart: CPU, memory, disks, network with addresses, cloud-init, features, boot, agent, snapshots' names. Works for guests of an offline node. Secrets are never read: set_keys names what is set but not sent.",
	func(_ context.Context, s *Session, in getGuestConfigIn) (*report.GuestConfig, error) {
		inv, err := s.inventory(s.needFor(in.Guest) | needPools)
		if err != nil {
			return nil, err
		}
		p, err := inv.find(in.Guest)
		if err != nil {
			return nil, err
		}
		s.offlineNodes(p.cluster, p.Node)
		cfg, err := s.configOf(p)
		if err != nil {
			return nil, err
		}
		v := p.cluster.view(inv)
		v.Configs = []parse.GuestConfig{*cfg}
		for _, g := range report.Guests(v, false) {
			if g.VMID == p.VMID {
				p.Guest = g
			}
		}
		return report.Configuration(p.Guest, *cfg), nil
	})

// needFor is what an inventory needs to find a guest: a name may stand only in
// the configurations.
func (s *Session) needFor(guest Text) need {
	if digits(string(guest)) {
		return 0
	}
	return needConfigs
}

// configOf reads one guest's configuration, unless the inventory has it.
func (s *Session) configOf(p *place) (*parse.GuestConfig, error) {
	if p.config != nil {
		s.badLines(p.config)
		return p.config, nil
	}
	out, err := s.ask(s.ctx, p.cluster.server, p.Type+"-config", p.Node, fmt.Sprint(p.VMID))
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(out)) == 0 {
		s.miss(p.Node, errorf(report.Internal, "%s-config: no setting of guest %d came", p.Type, p.VMID))
	}
	cfg, err := parse.GuestConfigFile(p.Type, p.Node, p.VMID, out)
	if err != nil {
		return nil, errorf(report.Internal, "%s", report.Clean(err.Error()))
	}
	s.badLines(&cfg)
	p.config = &cfg
	return &cfg, nil
}

func (s *Session) badLines(c *parse.GuestConfig) {
	if n := len(c.BadLines); n > 0 {
		s.miss(c.Node, errorf(report.Internal, "configuration of guest %d: line %d cannot be read (%d in all)", c.VMID, c.BadLines[0], n))
	}
}
