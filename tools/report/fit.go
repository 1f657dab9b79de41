package report

import "fmt"

// Drop takes the last tenth of a list away, at least one item, and counts it in
// more; it is false when only least items are left.
func Drop[T any](list *[]T, more *int, least int) bool {
	n := min(max(len(*list)/10, 1), len(*list)-least)
	if n <= 0 {
		return false
	}
	*list = (*list)[:len(*list)-n]
	*more += n
	return true
}

// Shorten takes the last tenth of a page's items away, at least one, and makes
// the page say so; it is false when one item is left. offset is where the page
// begins.
func Shorten[T any](items *[]T, p *Page, offset int) bool {
	more := 0
	if !Drop(items, &more, 1) {
		return false
	}
	p.Returned, p.Truncated = len(*items), true
	p.Next = Ptr(offset + len(*items))
	return true
}

// findingTable shows findings to people, none when there are none; more is how
// many were left out.
func findingTable(fs []Finding, more int) []Table {
	if len(fs) == 0 {
		return nil
	}
	t := Table{Title: "Findings", Columns: []string{"severity", "code", "subject", "what", "limit"}}
	for _, f := range fs {
		t.Rows = append(t.Rows, []string{string(f.Severity), f.Code, f.Subject, f.Message, f.Threshold})
	}
	if more > 0 {
		t.Notes = []string{fmt.Sprintf("and %d more findings", more)}
	}
	return []Table{t}
}
