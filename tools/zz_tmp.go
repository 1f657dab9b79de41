package tools

import (
	"bytes"
	"pvelens/tools/parse"
)

func guestConfigs(b []byte) ([]parse.GuestConfig, error) { return parse.GuestConfigs(bytes.NewReader(b)) }
func haStates(b []byte) (map[string]string, error)        { return nil, nil }
func (s *Session) live(c *cluster)                        {}

type pool struct {
	Name  string
	VMIDs []int
}

func poolLines(b []byte) ([]pool, error) { return nil, nil }

type packagesTmp struct{ PVEVersion string }

func parsePackagesTmp(b []byte) (packagesTmp, error) { return packagesTmp{}, nil }
