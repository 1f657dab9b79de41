package report

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// A Table is what people see of a report on a terminal. A row's cells beyond
// the columns are dropped; an empty cell prints as a dash.
type Table struct {
	Title   string
	Columns []string // a name that begins with > is aligned to the right
	Rows    [][]string
	Notes   []string // lines below the table
}

// A Tabler is a report that people can read.
type Tabler interface {
	Head() *Answer
	Tables() []Table
}

// Write prints the table with columns padded by two blanks. A table with one
// column of names and one of values prints as a list of facts.
func (t Table) Write(w io.Writer) error {
	var b strings.Builder
	if t.Title != "" {
		fmt.Fprintln(&b, t.Title)
	}
	rows := t.Rows
	if len(t.Columns) > 0 && len(rows) > 0 {
		head := make([]string, len(t.Columns))
		for i, c := range t.Columns {
			head[i] = strings.ToUpper(strings.TrimPrefix(c, ">"))
		}
		rows = append([][]string{head}, rows...)
	}
	widths := make([]int, len(t.Columns))
	for _, r := range rows {
		for i := range min(len(r), len(widths)) {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell(r[i])))
		}
	}
	for _, r := range rows {
		var line strings.Builder
		for i := range widths {
			c := ""
			if i < len(r) {
				c = r[i]
			}
			c = cell(c)
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
			if strings.HasPrefix(t.Columns[i], ">") {
				c = pad + c
			} else {
				c += pad
			}
			if i > 0 {
				line.WriteString("  ")
			}
			line.WriteString(c)
		}
		fmt.Fprintln(&b, strings.TrimRight(line.String(), " "))
	}
	for _, n := range t.Notes {
		fmt.Fprintln(&b, n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func cell(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Bytes renders a size for people, in units of 1024; "" when it is absent.
func Bytes(n *int64) string {
	if n == nil {
		return ""
	}
	v, unit := float64(*n), 0
	for v >= 1024 && unit < 5 {
		v, unit = v/1024, unit+1
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", *n)
	}
	return fmt.Sprintf("%.1f %ciB", v, "KMGTP"[unit-1])
}

// Percent renders a share 0..1 for people; "" when it is absent.
func Percent(r *float64) string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf("%.1f%%", *r*100)
}

// Seconds renders a duration in seconds for people; "" when it is absent.
func Seconds(s *int64) string {
	if s == nil {
		return ""
	}
	d := time.Duration(*s) * time.Second
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%dd", int(d.Hours())/24)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	case d >= time.Minute:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	}
	return fmt.Sprintf("%ds", int(d.Seconds()))
}

// Yes renders a flag for people: "yes", or "" when it is not set.
func Yes(b bool) string {
	if b {
		return "yes"
	}
	return ""
}
