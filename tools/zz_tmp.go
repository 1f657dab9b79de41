package tools

func (s *Session) live(c *cluster)                 {}
