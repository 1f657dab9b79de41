package parse

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A SMART is one disk's own report. Its serial number and WWN have no field.
type SMART struct {
	Device   string // /dev/nvme0n1
	Protocol string // NVMe, ATA, SCSI
	Model    string
	Size     *int64 // bytes
	RPM      *int64 // nil: solid state, or not told

	Asleep     bool // not woken to be asked: everything else is unknown
	Unreadable bool // smartctl could not open it or read its identity

	Health   DiskHealth
	Reasons  []string // why it failed, in words of our own; [] unless Health is failed
	OnlyWear bool     // failed, and the rated writes being used up is the only reason

	WearLeft       *int   // percent of the rated life, 0..100
	PercentageUsed *int   // NVMe, SCSI: may exceed 100
	Spare          *int   // NVMe: percent of the spare blocks that is left
	SpareLimit     *int   // NVMe: below this it fails
	MediaErrors    *int64 // NVMe; ATA: pending or uncorrectable sectors, the larger; SCSI: uncorrected errors
	Reallocated    *int64 // ATA: sectors; SCSI: grown defects
	Temperature    *int64 // °C
	PowerOnHours   *int64
	CriticalBits   *int64 // NVMe: the critical warning as a bit mask
	FailingNow     []string
	FailedPast     []string // names of ATA attributes that were below their limit once
}

// criticalWarnings are the bits of NVMe's critical warning.
var criticalWarnings = []struct {
	bit  int64
	text string
}{
	{1, "spare blocks are below their limit"},
	{2, "the temperature is beyond its limit"},
	{4, "reliability is degraded"},
	{8, "the disk is read-only"},
	{16, "the backup of its volatile memory failed"},
	{32, "its persistent memory is read-only"},
}

const wearBit = 4

// Smart reads smartctl -n standby -i -H -A -j (smartmontools 7.2 to 7.5). The
// exit status, which is also in the output, is a bit mask; only its first two
// bits mean that the disk was not read.
//
//	{"smartctl":{"exit_status":8,…},"device":{"name":"/dev/nvme0n1","protocol":"NVMe"},"model_name":"M2","smart_status":{"passed":false,"nvme":{"value":4}},"nvme_smart_health_information_log":{"critical_warning":4,"available_spare":100,"available_spare_threshold":10,"percentage_used":103,"media_errors":0,…}}
func Smart(out []byte) (SMART, []Note, error) {
	o, err := jsonOne("smartctl", out)
	if err != nil {
		return SMART{}, nil, err
	}
	run, ok := o.object("smartctl")
	if !ok {
		return SMART{}, nil, fmt.Errorf("smartctl: want %q in its JSON", "smartctl")
	}
	device, _ := o.object("device")
	capacity, _ := o.object("user_capacity")
	s := SMART{
		Device: device.text("name"), Protocol: device.text("protocol"), Model: modelName(o), Size: positive(capacity.integer("bytes")),
		RPM: positive(o.integer("rotation_rate")), Health: DiskUnknown, Reasons: []string{}, FailingNow: []string{}, FailedPast: []string{},
	}
	s.Asleep = asleep(o, run)
	if exit := run.integer("exit_status"); exit != nil && *exit&3 != 0 && !s.Asleep {
		s.Unreadable = true
	}
	if !s.Asleep {
		s.read(o)
	}
	return s, *o.notes, nil
}

func modelName(o jsonObject) string {
	for _, key := range []string{"model_name", "scsi_model_name", "scsi_product"} {
		if m := o.text(key); m != "" {
			return m
		}
	}
	return ""
}

// asleep: with -n standby smartctl says so and ends with status 2.
func asleep(o, run jsonObject) bool {
	for _, m := range run.objects("messages") {
		text := strings.ToLower(m.text("string"))
		if strings.Contains(text, "device is in") && (strings.Contains(text, "standby") || strings.Contains(text, "sleep")) {
			return true
		}
	}
	mode, _ := o.object("power_mode")
	exit := run.integer("exit_status")
	return exit != nil && *exit == 2 && strings.Contains(strings.ToLower(mode.text("ata_string")+mode.text("scsi_string")), "standby")
}

func (s *SMART) read(o jsonObject) {
	status, _ := o.object("smart_status")
	if passed := status.flag("passed"); passed != nil && *passed {
		s.Health = DiskGood
	} else if passed != nil {
		s.Health = DiskFailed
	}
	temperature, _ := o.object("temperature")
	hours, _ := o.object("power_on_time")
	s.Temperature, s.PowerOnHours = positive(temperature.integer("current")), nonNegative(hours.integer("hours"))
	s.readNVMe(o)
	s.readATA(o)
	s.readSCSI(o)
	if e, ok := o.object("endurance_used"); ok && s.PercentageUsed == nil { // 7.4 and later, every protocol
		s.PercentageUsed = smallInt(nonNegative(e.integer("current_percent")))
	}
	if s.PercentageUsed != nil {
		s.WearLeft = new(max(0, 100-*s.PercentageUsed))
	}
	s.explain()
}

func (s *SMART) readNVMe(o jsonObject) {
	log, ok := o.object("nvme_smart_health_information_log")
	if !ok {
		return
	}
	s.CriticalBits, s.MediaErrors = nonNegative(log.integer("critical_warning")), nonNegative(log.integer("media_errors"))
	s.PercentageUsed = smallInt(nonNegative(log.integer("percentage_used")))
	s.Spare, s.SpareLimit = smallInt(nonNegative(log.integer("available_spare"))), smallInt(nonNegative(log.integer("available_spare_threshold")))
	if s.PowerOnHours == nil {
		s.PowerOnHours = nonNegative(log.integer("power_on_hours"))
	}
	if s.Temperature == nil {
		s.Temperature = positive(log.integer("temperature"))
	}
}

// wearAttribute names the attributes whose value is the life that is left, as
// Proxmox itself picks them.
var wearAttribute = regexp.MustCompile(`(?i)media_wearout_indicator|ssd_life_left|wear_leveling_count|perc_write/erase_c|perc_rated_life_remain|remaining_lifetime_perc|percent_lifetime_remain|lifetime_left|perc_write/erase_count`)

func (s *SMART) readATA(o jsonObject) {
	attributes, _ := o.object("ata_smart_attributes")
	for _, a := range attributes.objects("table") {
		raw, _ := a.object("raw")
		value, name := nonNegative(raw.integer("value")), a.text("name")
		switch id := a.integer("id"); {
		case id == nil:
		case *id == 5:
			s.Reallocated = value
		case *id == 197, *id == 198:
			s.MediaErrors = larger(s.MediaErrors, value)
		}
		if s.WearLeft == nil && wearAttribute.MatchString(name) {
			s.WearLeft = wearLeft(a.text("value"))
		}
		switch a.text("when_failed") {
		case "now":
			s.FailingNow = append(s.FailingNow, name)
		case "past":
			s.FailedPast = append(s.FailedPast, name)
		}
	}
}

func (s *SMART) readSCSI(o jsonObject) {
	if used := smallInt(nonNegative(o.integer("scsi_percentage_used_endurance_indicator"))); used != nil {
		s.PercentageUsed = used
	}
	if grown := nonNegative(o.integer("scsi_grown_defect_list")); grown != nil {
		s.Reallocated = grown
	}
	counters, _ := o.object("scsi_error_counter_log")
	for _, kind := range []string{"read", "write", "verify"} {
		if c, ok := counters.object(kind); ok {
			s.MediaErrors = larger(s.MediaErrors, nonNegative(c.integer("total_uncorrected_errors")))
		}
	}
}

func larger(a, b *int64) *int64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

// explain finds the reasons of a failed verdict and whether wear is the only
// one: NVMe sets the reliability bit also when the rated writes are used up.
func (s *SMART) explain() {
	if s.Health != DiskFailed {
		return
	}
	var bits int64
	if s.CriticalBits != nil {
		bits = *s.CriticalBits
	}
	for _, w := range criticalWarnings {
		if bits&w.bit != 0 {
			s.Reasons = append(s.Reasons, w.text)
		}
	}
	if s.PercentageUsed != nil && *s.PercentageUsed >= 100 {
		s.Reasons = append(s.Reasons, fmt.Sprintf("the rated endurance is used up (%d %%)", *s.PercentageUsed))
	}
	for _, name := range s.FailingNow {
		s.Reasons = append(s.Reasons, "attribute "+name+" is below its limit")
	}
	if s.MediaErrors != nil && *s.MediaErrors > 0 {
		s.Reasons = append(s.Reasons, fmt.Sprintf("%d media errors", *s.MediaErrors))
	}
	s.OnlyWear = s.onlyWear(bits)
}

func (s *SMART) onlyWear(bits int64) bool {
	if s.MediaErrors == nil || *s.MediaErrors > 0 || s.Spare != nil && s.SpareLimit != nil && *s.Spare <= *s.SpareLimit {
		return false
	}
	usedUp := s.PercentageUsed != nil && *s.PercentageUsed >= 100
	attributes := len(s.FailingNow) > 0 && !slices.ContainsFunc(s.FailingNow, func(name string) bool { return !wearAttribute.MatchString(name) })
	return bits == wearBit && usedUp || s.CriticalBits == nil && attributes
}
