package report

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Interval is the longest time that passes between two runs of a schedule, a
// calendar event of Proxmox such as `02:30`, `sat 03:15`, `mon..fri 8..17:0/30`
// or `*-*-1 04:00`. ok is false when the schedule cannot be read, or runs at most
// once.
//
// Grammar: proxmox-time's calendar events, PVE 7.1 to 9, a part of systemd's.
func Interval(schedule string) (d time.Duration, ok bool) {
	s, ok := parseSchedule(schedule)
	if !ok {
		return 0, false
	}
	return s.longestGap()
}

// gapAt is the time between the two runs of a schedule around a moment: the last
// one at or before it and the first one after it. at is the wall clock of the
// node, whatever its zone. ok is false when there are not both runs.
func (c calendar) gapAt(at time.Time) (d time.Duration, ok bool) {
	before, ok := c.previous(at)
	after, ok2 := c.next(at)
	return after.Sub(before), ok && ok2
}

// Readable reports whether a schedule follows the grammar of calendar events.
func Readable(schedule string) bool {
	_, ok := parseSchedule(schedule)
	return ok
}

// calendar is a schedule as sets: true at an index means that it runs then.
type calendar struct {
	years                                  []bool // nil is every year
	weekdays, months, days, hours, minutes []bool // Sunday is 0; months and days from 1
}

const lastYear = 2200 // the grammar's own end

var scheduleWords = map[string]string{
	"minutely": "*:*", "hourly": "*:00", "daily": "00:00", "weekly": "mon 00:00", "monthly": "*-*-1 00:00",
	"yearly": "*-1-1 00:00", "annually": "*-1-1 00:00", "quarterly": "*-1,4,7,10-1 00:00",
	"semiannually": "*-1,7-1 00:00", "semi-annually": "*-1,7-1 00:00",
}

func parseSchedule(text string) (calendar, bool) {
	text = strings.ToLower(strings.TrimSpace(text))
	if full, ok := scheduleWords[text]; ok {
		text = full
	}
	c := calendar{nil, every(0, 6), every(0, 12), every(0, 31), every(0, 23), every(0, 59)}
	fields := strings.Fields(text)
	if n := len(fields); n > 1 && fields[n-1] == "utc" {
		fields = fields[:n-1]
	}
	if len(fields) == 0 || len(fields) > 3 {
		return c, false
	}
	timed := false
	for i, f := range fields {
		good := false
		switch {
		case i == 0 && f[0] >= 'a' && f[0] <= 'z':
			c.weekdays, good = weekdays(f)
		case !timed && isDate(f):
			c.years, c.months, c.days, good = dates(f)
		case !timed:
			timed = true
			c.hours, c.minutes, good = clockTimes(f)
		}
		if !good {
			return c, false
		}
	}
	if !timed {
		c.hours, c.minutes = only(24, 0), only(60, 0)
	}
	return c, true
}

// isDate tells 2026-1-1, *-*-1 and 1-15 from a time; a range of times has no
// dash.
func isDate(f string) bool { return strings.Contains(f, "-") && !strings.Contains(f, ":") }

var weekdayNames = []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}

func weekday(name string) int {
	return slices.IndexFunc(weekdayNames, func(full string) bool { return len(name) >= 3 && strings.HasPrefix(full, name) })
}

func weekdays(list string) ([]bool, bool) {
	set := make([]bool, 7)
	for item := range strings.SplitSeq(list, ",") {
		from, to, ranged := strings.Cut(strings.Replace(item, "-", "..", 1), "..")
		if !ranged {
			to = from
		}
		a, b := weekday(from), weekday(to)
		if a < 0 || b < 0 {
			return nil, false
		}
		for d := a; ; d = (d + 1) % 7 {
			set[d] = true
			if d == b {
				break
			}
		}
	}
	return set, true
}

// dates reads YEARS-MONTHS-DAYS or MONTHS-DAYS.
func dates(f string) (years, months, days []bool, ok bool) {
	parts := strings.Split(f, "-")
	if len(parts) == 3 {
		if parts[0] != "*" {
			if years, ok = numbers(parts[0], 0, lastYear); !ok {
				return nil, nil, nil, false
			}
		}
		parts = parts[1:]
	}
	if len(parts) != 2 {
		return nil, nil, nil, false
	}
	months, ok = numbers(parts[0], 1, 12)
	days, ok2 := numbers(parts[1], 1, 31)
	return years, months, days, ok && ok2
}

// clockTimes reads HOURS:MINUTES[:SECONDS], or MINUTES of every hour.
func clockTimes(f string) (hours, minutes []bool, ok bool) {
	parts := strings.Split(f, ":")
	switch len(parts) {
	case 1:
		minutes, ok = numbers(parts[0], 0, 59)
		return every(0, 23), minutes, ok
	case 2, 3:
		hours, ok = numbers(parts[0], 0, 23)
		minutes, ok2 := numbers(parts[1], 0, 59)
		return hours, minutes, ok && ok2
	}
	return nil, nil, false
}

// numbers reads a list of N, A..B, each with an optional /STEP, and *.
func numbers(list string, lo, hi int) ([]bool, bool) {
	set := make([]bool, hi+1)
	for item := range strings.SplitSeq(list, ",") {
		body, stepText, stepped := strings.Cut(item, "/")
		from, to, step := lo, hi, 1
		var err, err2 error
		if stepped {
			step, err = strconv.Atoi(stepText)
		}
		if body != "*" {
			a, b, ranged := strings.Cut(body, "..")
			from, err2 = strconv.Atoi(a)
			switch {
			case ranged && err2 == nil:
				to, err2 = strconv.Atoi(b)
			case !stepped:
				to = from
			}
		}
		if err != nil || err2 != nil || step < 1 || from < lo || to > hi || from > to {
			return nil, false
		}
		for n := from; n <= to; n += step {
			set[n] = true
		}
	}
	return set, true
}

func every(lo, hi int) []bool {
	set := make([]bool, hi+1)
	for i := lo; i <= hi; i++ {
		set[i] = true
	}
	return set
}

func only(n, at int) []bool {
	set := make([]bool, n)
	set[at] = true
	return set
}

// longestGap walks over years enough for every weekday to meet every date.
func (c calendar) longestGap() (time.Duration, bool) {
	first, last, inner, ok := c.ofDay()
	if !ok {
		return 0, false
	}
	longest, previous := time.Duration(0), -1
	const days = 9 * 366
	for i, day := 0, time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC); i < days; i, day = i+1, day.AddDate(0, 0, 1) {
		if !c.on(day) {
			continue
		}
		if previous >= 0 {
			longest = max(longest, time.Duration((i-previous)*24*60+first-last)*time.Minute, inner)
		}
		previous = i
	}
	return longest, longest > 0
}

// on reports whether it runs on a day.
func (c calendar) on(day time.Time) bool {
	return c.weekdays[day.Weekday()] && c.months[day.Month()] && c.days[day.Day()] && (c.years == nil || day.Year() <= lastYear && c.years[day.Year()])
}

// farthest is how many days are looked at for a run: every weekday meets every
// date within them.
const farthest = 41 * 366

// next is the first run after a moment.
func (c calendar) next(t time.Time) (time.Time, bool) { return c.seek(t, 1) }

// previous is the last run at or before a moment.
func (c calendar) previous(t time.Time) (time.Time, bool) { return c.seek(t, -1) }

// seek looks for the nearest run in one direction, day by day.
func (c calendar) seek(t time.Time, direction int) (time.Time, bool) {
	if !slices.Contains(c.hours, true) || !slices.Contains(c.minutes, true) {
		return time.Time{}, false
	}
	midnight := time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
	minute := t.Hour()*60 + t.Minute()
	for i, day := 0, midnight; i < farthest; i, day = i+1, day.AddDate(0, 0, direction) {
		if !c.on(day) {
			continue
		}
		from := minute
		switch {
		case i == 0 && direction > 0:
			from++
		case direction > 0:
			from = 0
		case i > 0:
			from = 24*60 - 1
		}
		for m := from; m >= 0 && m < 24*60; m += direction {
			if c.hours[m/60] && c.minutes[m%60] {
				return day.Add(time.Duration(m) * time.Minute), true
			}
		}
	}
	return time.Time{}, false
}

// ofDay returns the first and last minute of a day on which it runs, and the
// longest time between two runs in it.
func (c calendar) ofDay() (first, last int, inner time.Duration, ok bool) {
	first = -1
	for h, on := range c.hours {
		for m, on2 := range c.minutes {
			if !on || !on2 {
				continue
			}
			at := h*60 + m
			if first < 0 {
				first = at
			} else {
				inner = max(inner, time.Duration(at-last)*time.Minute)
			}
			last = at
		}
	}
	return first, last, inner, first >= 0
}
