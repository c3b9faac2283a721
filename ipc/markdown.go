package ipc

import (
	"fmt"
	"strconv"
	"strings"
)

// Markdown is the book as a table, for docs/PRIVSEP.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString("| kind | message | from → to | permitted while | bytes | descriptors | then | meaning |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|\n")
	for _, r := range book {
		then := ""
		if r.Then != Born {
			then = r.Then.String()
		}
		fmt.Fprintf(&b, "| %d | %s | %s → %s | %s | %s | %d | %s | %s |\n",
			r.Kind, r.Name, r.From, r.To, r.Phases, r.size(), r.FDs, then, r.About)
	}
	return b.String()
}

// size is the row's number of bytes, or their range.
func (r Row) size() string {
	if r.Min == r.Max {
		return strconv.Itoa(r.Min)
	}
	return fmt.Sprintf("%d–%d", r.Min, r.Max)
}
