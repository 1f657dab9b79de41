package parse

import (
	"errors"
	"strings"
)

// NodeFilesystem is one mounted local filesystem of a node. Sizes are bytes; a
// number that the filesystem does not have is nil. Available is less than
// Size minus Used where blocks are reserved for root.
type NodeFilesystem struct {
	Type                  string
	Inodes, InodesUsed    *int64
	Size, Used, Available *int64
	Source, Target        string
}

// DF reads the form node-df, in the order of the output. An output without a
// header is an error; a row that cannot be read becomes a note.
//
// Program: df of coreutils 8.32 to 9.7 with --block-size=1 and --output. Input:
//
//	Type  Inodes  IUsed   1B-blocks        Used       Avail Filesystem           Mounted on
//	ext4 6553600 123456 98000000000 21000000000 72000000000 /dev/mapper/pve-root /
func DF(out []byte) ([]NodeFilesystem, []Note, error) {
	header, rows, _ := strings.Cut(string(out), "\n")
	if f := strings.Fields(header); len(f) < 8 || parseInt(f[3]) != nil {
		return nil, nil, errors.New("df: line 1: want a header of 8 columns")
	}
	items, notes, err := eachLine("df", "8 columns", []byte("\n"+rows), readDF)
	return items, notes, err
}

func readDF(line string) (NodeFilesystem, bool) {
	words, rest := cutFields(line, 6)
	source, target, ok := cutSource(rest)
	if len(words) < 6 || !ok {
		return NodeFilesystem{}, false
	}
	fs := NodeFilesystem{Type: words[0], Source: source, Target: target}
	good := true
	for i, to := range []**int64{&fs.Inodes, &fs.InodesUsed, &fs.Size, &fs.Used, &fs.Available} {
		if w := words[i+1]; w != "-" {
			good = setInt(to, w) && good
		}
	}
	return fs, good
}

// cutFields returns the first n words and the rest of the line.
func cutFields(line string, n int) (words []string, rest string) {
	rest = strings.TrimSpace(line)
	for len(words) < n && rest != "" {
		end := strings.IndexAny(rest+" ", " \t")
		words = append(words, rest[:end])
		rest = strings.TrimLeft(rest[end:], " \t")
	}
	return words, rest
}

// cutSource parts a source from a mount point, which both may have blanks: the
// mount point begins at the first blank before a slash.
func cutSource(s string) (source, target string, ok bool) {
	i := strings.Index(s, " /")
	if i < 0 {
		return "", "", false
	}
	return strings.TrimSpace(s[:i]), s[i+1:], true
}
