package transport

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

// A Chain is what Verify found.
type Chain struct {
	Lines     int    // lines, torn ones included
	Recovered int    // torn lines that a later line accounts for
	First     string // what the first line has before it: zeros, or the head of the file before
	Head      string // SHA-256 of the last line; zeros for an empty log
	HeadFound bool   // the noted head is one of the lines, or First
}

// maxAuditLine bounds what Verify holds in memory.
const maxAuditLine = 1 << 20

// Verify reads a log and checks that each line follows from the one before it.
// It proves changes inside; a tail that was cut off, or a log written anew, shows
// only against a head that was noted elsewhere. head is that one, or "".
// Rotated files are verified one after another, oldest first, as one stream.
func Verify(r io.Reader, head string) (Chain, error) {
	c := Chain{First: noPrev, Head: noPrev, HeadFound: head == ""}
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, maxAuditLine)
	torn := false
	for sc.Scan() {
		c.Lines++
		var l AuditLine
		err := json.Unmarshal(sc.Bytes(), &l)
		switch {
		case err != nil && torn:
			return c, fmt.Errorf("audit: line %d: want a recovered line after a torn one", c.Lines)
		case err != nil:
			torn = true
		case c.Lines == 1:
			c.First = l.Prev
			c.HeadFound = c.HeadFound || l.Prev == head
		case l.Prev != c.Head:
			return c, fmt.Errorf("audit: line %d: does not follow from line %d: a line was changed, added or removed here", c.Lines, c.Lines-1)
		case torn && l.Event != "recovered":
			return c, fmt.Errorf("audit: line %d: want a recovered line after a torn one", c.Lines)
		case l.Event == "recovered":
			c.Recovered++
			torn = false
		}
		c.Head = hashLine(sc.Bytes())
		c.HeadFound = c.HeadFound || c.Head == head
	}
	switch {
	case sc.Err() != nil:
		return c, fmt.Errorf("audit: line %d: %w", c.Lines+1, sc.Err())
	case torn:
		return c, fmt.Errorf("audit: line %d: the last line is torn; the next start closes it", c.Lines)
	case !c.HeadFound:
		return c, fmt.Errorf("audit: the noted head is in no line: the log was cut off or written anew since")
	}
	return c, nil
}
