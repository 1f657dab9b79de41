package report

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
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

// Write prints the table with columns padded by two blanks, each as wide as its
// longest cell. A table with one column of names and one of values prints as a
// list of facts.
func (t Table) Write(w io.Writer) error { return t.WriteWidth(w, 0) }

// WriteWidth is Write for a terminal of a width in columns: where the table is
// wider, columns that say nothing are left out, the widest columns of text become
// narrower, their cells go on in the next line, and a word that is too long loses
// its middle. Numbers are never cut. A width of 0 is no limit.
func (t Table) WriteWidth(w io.Writer, width int) error {
	var b strings.Builder
	if t.Title != "" {
		writeLines(&b, Wrap(line(t.Title), width))
	}
	rows := t.rows()
	if width > 0 && total(t.widths(rows, 0)) > width {
		t = t.withoutEmpty()
		rows = t.rows()
	}
	widths := t.widths(rows, width)
	for _, r := range rows {
		t.writeRow(&b, r, widths)
	}
	for _, n := range t.Notes {
		writeLines(&b, Wrap(line(n), width))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// rows are the head and the cells.
func (t Table) rows() [][]string {
	if len(t.Columns) == 0 || len(t.Rows) == 0 {
		return nil
	}
	rows := [][]string{t.head()}
	for _, r := range t.Rows {
		rows = append(rows, t.cells(r))
	}
	return rows
}

func (t Table) head() []string {
	head := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		head[i] = strings.ToUpper(strings.TrimPrefix(c, ">"))
	}
	return head
}

// cells are a row's cells, as many as there are columns.
func (t Table) cells(row []string) []string {
	out := make([]string, len(t.Columns))
	for i := range out {
		if i < len(row) {
			out[i] = line(row[i])
		}
		if out[i] == "" {
			out[i] = "-"
		}
	}
	return out
}

// The fewest columns that a column of text keeps: while its words still fit,
// and when they must be cut.
const (
	narrow    = 20
	narrowest = 8
)

// widths are the columns' widths, together at most most where text allows it.
// Text is broken at its blanks before a word is cut; of a column of numbers only
// the name is broken. The first row is the head.
func (t Table) widths(rows [][]string, most int) []int {
	widths, words := make([]int, len(t.Columns)), make([]int, len(t.Columns))
	for n, r := range rows {
		for i, c := range r {
			widths[i] = max(widths[i], columns(c))
			if n > 0 && t.right(i) {
				words[i] = max(words[i], columns(c))
				continue
			}
			for w := range strings.FieldsSeq(c) {
				words[i] = max(words[i], columns(w))
			}
		}
	}
	if most <= 0 {
		return widths
	}
	for i := range words {
		if !t.right(i) {
			words[i] = max(narrow, words[i])
		}
	}
	shrink(widths, words, most)
	for i := range words {
		if !t.right(i) {
			words[i] = max(narrowest, columns(t.Columns[i]))
		}
	}
	shrink(widths, words, most)
	return widths
}

// right reports whether a column is aligned to the right, as numbers are.
func (t Table) right(i int) bool { return strings.HasPrefix(t.Columns[i], ">") }

// total is the width of a row.
func total(widths []int) int {
	n := 2 * (len(widths) - 1)
	for _, w := range widths {
		n += w
	}
	return n
}

// shrink takes from the widest columns, down to their least width.
func shrink(widths, least []int, most int) {
	for total := total(widths); total > most; total-- {
		widest := -1
		for i, w := range widths {
			if w > least[i] && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

// withoutEmpty leaves out the columns in which no row says anything.
func (t Table) withoutEmpty() Table {
	out := t
	out.Columns, out.Rows = nil, make([][]string, len(t.Rows))
	for i, name := range t.Columns {
		said := false
		for _, r := range t.Rows {
			said = said || i < len(r) && r[i] != ""
		}
		if !said {
			continue
		}
		out.Columns = append(out.Columns, name)
		for n, r := range t.Rows {
			c := ""
			if i < len(r) {
				c = r[i]
			}
			out.Rows[n] = append(out.Rows[n], c)
		}
	}
	return out
}

func (t Table) writeRow(b *strings.Builder, row []string, widths []int) {
	cells := make([][]string, len(row))
	height := 1
	for i, c := range row {
		cells[i] = Wrap(c, widths[i])
		height = max(height, len(cells[i]))
	}
	for n := range height {
		var out strings.Builder
		for i := range row {
			c := ""
			if n < len(cells[i]) {
				c = cells[i][n]
			}
			pad := strings.Repeat(" ", max(0, widths[i]-columns(c)))
			if t.right(i) {
				c = pad + c
			} else {
				c += pad
			}
			if i > 0 {
				out.WriteString("  ")
			}
			out.WriteString(c)
		}
		fmt.Fprintln(b, strings.TrimRight(out.String(), " "))
	}
}

func writeLines(b *strings.Builder, lines []string) {
	for _, l := range lines {
		fmt.Fprintln(b, l)
	}
}

// line makes one line of text that drives no terminal.
func line(s string) string {
	if plain(s) {
		return s
	}
	return strip(s, len(s), ' ')
}

// Wrap breaks text at its blanks into lines of at most width columns. A word
// that is longer loses its middle. A width of 0 is no limit.
func Wrap(s string, width int) []string {
	if width <= 0 || columns(s) <= width {
		return []string{s}
	}
	indent := s[:len(s)-len(strings.TrimLeft(s, " "))]
	var out []string
	now := ""
	for i, word := range strings.Fields(s) {
		if i == 0 {
			word = indent + word
		}
		word = shorten(word, width)
		switch {
		case i == 0:
			now = word
		case columns(now)+1+columns(word) <= width:
			now += " " + word
		default:
			out, now = append(out, now), word
		}
	}
	return append(out, now)
}

// shorten takes the middle out of a word that is wider than width: the beginning
// and the end of a name or a path tell more.
func shorten(word string, width int) string {
	if columns(word) <= width || width < 3 {
		return word
	}
	runes := []rune(word)
	head, tail := 0, len(runes)
	for left, right := (width)/2, (width-1)/2; ; {
		n := runeColumns(runes[head])
		m := runeColumns(runes[tail-1])
		switch {
		case n <= left:
			left, head = left-n, head+1
		case m <= right:
			right, tail = right-m, tail-1
		default:
			return string(runes[:head]) + "…" + string(runes[tail:])
		}
	}
}

// columns is the width of text on a terminal.
func columns(s string) int {
	if plain(s) {
		return len(s)
	}
	n := 0
	for _, r := range s {
		n += runeColumns(r)
	}
	return n
}

// runeColumns is 0 for a mark that joins the rune before it, 2 for wide letters
// and pictures, else 1.
func runeColumns(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana), r >= 0xFF01 && r <= 0xFF60, r >= 0x1F300 && r <= 0x1FAFF:
		return 2
	}
	return 1
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
