package parse

// Startup is the boot order: number, and the seconds to wait after the start
// and for the shutdown.
type Startup struct{ Order, Up, Down *int64 }

// Agent is the guest agent's setting of a VM.
type Agent struct {
	Enabled bool
	Type    string // virtio or isa
	Options []Option
}

// Features are what a container may do beyond the default.
type Features struct {
	Nesting, Keyctl, FUSE, MkNod, ForceRWSys bool
	Mount                                    []string // filesystem types
	Options                                  []Option
}

func parseStartup(value string) *Startup {
	var s Startup
	for _, o := range splitOptions(value, "order") {
		ok := true
		switch o.Key {
		case "order":
			ok = o.Value == "any" || setInt(&s.Order, o.Value)
		case "up":
			ok = setInt(&s.Up, o.Value)
		case "down":
			ok = setInt(&s.Down, o.Value)
		}
		if !ok {
			return nil
		}
	}
	return &s
}

func parseAgent(value string) *Agent {
	var a Agent
	for _, o := range splitOptions(value, "enabled") {
		switch o.Key {
		case "enabled":
			if !setFlag(&a.Enabled, o.Value) {
				return nil
			}
		case "type":
			a.Type = o.Value
		default:
			a.Options = append(a.Options, o)
		}
	}
	return &a
}

func parseFeatures(value string) *Features {
	var f Features
	flags := map[string]*bool{"nesting": &f.Nesting, "keyctl": &f.Keyctl, "fuse": &f.FUSE, "mknod": &f.MkNod, "force_rw_sys": &f.ForceRWSys}
	for _, o := range splitOptions(value, "") {
		flag := flags[o.Key]
		switch {
		case o.Key == "mount":
			f.Mount = splitList(o.Value)
		case flag == nil || !setFlag(flag, o.Value):
			f.Options = append(f.Options, o)
		}
	}
	return &f
}

// setMemory reads MiB, plain or as current=MiB.
func (s *GuestSettings) setMemory(value string) bool {
	return setMiB(&s.MemoryBytes, optionValue(value, "current"))
}

func setMiB(to **int64, value string) bool {
	n := parseInt(value)
	if n == nil || *n < 0 || *n > 1<<40 {
		return false
	}
	*to = new(*n << 20)
	return true
}

// optionValue returns the value of the key, or the bare first item's.
func optionValue(value, key string) string {
	for _, o := range splitOptions(value, key) {
		if o.Key == key {
			return o.Value
		}
	}
	return ""
}

func (s *GuestSettings) setCPU(value string) bool {
	for _, o := range splitOptions(value, "cputype") {
		switch o.Key {
		case "cputype":
			s.CPUType = o.Value
		case "flags":
			s.CPUFlags = splitList(o.Value)
		}
	}
	return s.CPUType != "" || s.CPUFlags != nil
}

func (s *GuestSettings) setBoot(value string) bool {
	for _, o := range splitOptions(value, "legacy") {
		switch o.Key {
		case "order":
			s.BootOrder = append([]string{}, splitList(o.Value)...)
		case "legacy":
			s.BootLegacy = o.Value
		}
	}
	return s.BootOrder != nil || s.BootLegacy != ""
}

func (s *GuestSettings) setMeta(value string) bool {
	for _, o := range splitOptions(value, "") {
		switch o.Key {
		case "ctime":
			setInt(&s.CreatedAt, o.Value)
		case "creation-qemu":
			s.CreatedWith = o.Value
		}
	}
	return true
}
