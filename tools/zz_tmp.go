package tools

func haStates(b []byte) (map[string]string, error) { return nil, nil }
func (s *Session) live(c *cluster)                 {}
