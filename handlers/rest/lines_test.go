package rest

import (
	"testing"

	"schedrestd/internal/limit"
)

// TestRequestLinesStayBelowJournald checks that two workers log fewer lines
// than journald's default limit permits, however many clients send requests. At
// most one line about omitted lines follows each line about a request, because
// only a source with such a line has a count of its own.
func TestRequestLinesStayBelowJournald(t *testing.T) {
	const workers, journald = 2, 10_000 / 30
	if n := workers * 2 * (limit.RequestLines.All + limit.RefusalLines.All); n > journald {
		t.Errorf("%d lines a second", n)
	}
}
