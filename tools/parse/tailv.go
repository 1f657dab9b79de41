package parse

import (
	"bytes"
	"fmt"
	"strings"
)

// Files splits the output of tail -v for the paths of its argv into the files'
// contents. A file that is missing on the node has no entry; an empty output
// gives an empty map. It fails when text is there but no header of a path asked.
//
// A line ==> X <== is a header only if X is a path asked and stands in the
// order of argv, so that such a line inside a file stays text. The newline
// before a header is tail's own and belongs to no file. Text before the first
// header (a talking login shell) is dropped.
//
// Program: tail of coreutils 8.32 to 9.7. Input:
//
//	==> /proc/uptime <==
//	4085.36 1028.31
func Files(out []byte, paths []string) (map[string][]byte, error) {
	files := make(map[string][]byte, len(paths))
	if len(bytes.TrimSpace(out)) == 0 {
		return files, nil
	}
	headers := longestInOrder(findHeaders(out, paths))
	if len(headers) == 0 {
		return nil, fmt.Errorf("tail -v: want the header of one of %s", strings.Join(paths, " "))
	}
	for i, h := range headers {
		end := len(out)
		if i+1 < len(headers) {
			end = headers[i+1].start
		}
		files[paths[h.path]] = out[h.body:max(h.body, end)]
	}
	return files, nil
}

// A tailHeader is a candidate: start is the newline before it (or 0), body the
// first byte after its line, path an index into argv.
type tailHeader struct{ start, body, path int }

func findHeaders(out []byte, paths []string) []tailHeader {
	var found []tailHeader
	for at := 0; at < len(out); {
		line, next := out[at:], len(out)
		if i := bytes.IndexByte(line, '\n'); i >= 0 {
			line, next = line[:i], at+i+1
		}
		name, ok := bytes.CutPrefix(line, []byte("==> "))
		if name, ok2 := bytes.CutSuffix(name, []byte(" <==")); ok && ok2 {
			for p, path := range paths {
				if string(name) == path {
					found = append(found, tailHeader{start: max(at-1, 0), body: next, path: p})
				}
			}
		}
		at = next
	}
	return found
}

// longestInOrder returns the longest run of headers whose paths rise, and of
// several the one whose headers come first: a header copied into a file's text
// then loses against the real one.
func longestInOrder(all []tailHeader) []tailHeader {
	paths := 0
	for _, h := range all {
		paths = max(paths, h.path+1)
	}
	// best[p] heads the longest run among the headers read so far (from the
	// end) whose path is p or later; next links a header to its follower.
	best := make([]int, paths+1)
	for p := range best {
		best[p] = -1
	}
	length, next := make([]int, len(all)), make([]int, len(all))
	for i := len(all) - 1; i >= 0; i-- {
		p := all[i].path
		next[i], length[i] = best[p+1], 1
		if next[i] >= 0 {
			length[i] += length[next[i]]
		}
		for q := p; q >= 0; q-- {
			if best[q] < 0 || length[i] >= length[best[q]] {
				best[q] = i
			}
		}
	}
	var run []tailHeader
	for i := best[0]; i >= 0; i = next[i] {
		run = append(run, all[i])
	}
	return run
}
