package handlers

import (
	"testing"
	"time"

	"schedrestd/model"
)

// TestUsageSpan checks for which time usage is requested, so that slurmdbd answers
// from the right table, and to which periods its rows belong.
func TestUsageSpan(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip(err)
	}
	const layout = "2006-01-02T15:04:05"
	at := func(s string) time.Time {
		if s == "" {
			return time.Time{}
		}
		v, err := time.ParseInLocation(layout, s, berlin)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, tt := range []struct {
		name, start, end, by string
		from, to, table      string // the request
		row, first, next     string // a row of the table, and its period in the report; "" for none
	}{
		{"months", "2025-02-01T00:00:00", "2025-05-01T00:00:00", "", "2025-02-01T00:00:00", "2025-05-01T00:00:00", "month", "2025-03-01T00:00:00", "2025-02-01T00:00:00", "2025-05-01T00:00:00"},
		{"by month", "2025-02-01T00:00:00", "2025-05-01T00:00:00", "month", "2025-02-01T00:00:00", "2025-05-01T00:00:00", "month", "2025-03-01T00:00:00", "2025-03-01T00:00:00", "2025-04-01T00:00:00"},
		{"days of months", "2025-03-01T00:00:00", "2025-04-01T00:00:00", "day", "2025-02-28T00:00:00", "2025-04-01T00:00:00", "day", "2025-03-30T00:00:00", "2025-03-30T00:00:00", "2025-03-31T00:00:00"},
		{"the day before", "2025-03-01T00:00:00", "2025-04-01T00:00:00", "day", "2025-02-28T00:00:00", "2025-04-01T00:00:00", "day", "2025-02-28T00:00:00", "", ""},
		{"hours of days", "2025-10-25T00:00:00", "2025-10-27T00:00:00", "hour", "2025-10-25T00:00:00", "2025-10-27T01:00:00", "hour", "2025-10-26T04:00:00", "2025-10-26T04:00:00", "2025-10-26T05:00:00"},
		{"the hour after", "2025-10-25T00:00:00", "2025-10-27T00:00:00", "hour", "2025-10-25T00:00:00", "2025-10-27T01:00:00", "hour", "2025-10-27T00:00:00", "", ""},
		{"a day of 23 hours", "2025-03-30T00:00:00", "2025-03-31T00:00:00", "", "2025-03-30T00:00:00", "2025-03-31T00:00:00", "hour", "2025-03-30T12:00:00", "2025-03-30T00:00:00", "2025-03-31T00:00:00"},
		{"a day of 25 hours", "2025-10-26T00:00:00", "2025-10-27T00:00:00", "", "2025-10-26T00:00:00", "2025-10-27T00:00:00", "day", "2025-10-26T00:00:00", "2025-10-26T00:00:00", "2025-10-27T00:00:00"},
		{"days that begin later", "2025-03-29T10:30:00", "2025-03-31T10:30:00", "day", "2025-03-29T10:00:00", "2025-03-31T11:00:00", "hour", "2025-03-29T12:00:00", "2025-03-29T10:00:00", "2025-03-30T00:00:00"},
		{"less than an hour", "2025-03-29T10:20:00", "2025-03-29T10:40:00", "", "2025-03-29T10:00:00", "2025-03-29T11:00:00", "hour", "2025-03-29T10:00:00", "2025-03-29T10:00:00", "2025-03-29T11:00:00"},
		{"the wrong order", "2025-03-29T10:00:00", "2025-03-28T10:00:00", "", "2025-03-29T10:00:00", "2025-03-29T11:00:00", "hour", "2025-03-29T11:00:00", "", ""},
		{"until the future", "2026-01-01T00:00:00", "2027-01-01T00:00:00", "day", "2026-01-01T00:00:00", "2026-02-15T11:00:00", "hour", "2026-02-15T10:00:00", "2026-02-15T00:00:00", "2026-02-15T11:00:00"},
		{"since today", "2026-02-15T00:00:00", "", "", "2026-02-15T00:00:00", "2026-02-15T11:00:00", "hour", "2026-02-15T10:00:00", "2026-02-15T00:00:00", "2026-02-15T11:00:00"},
		{"yesterday", "", "", "", "2026-02-14T00:00:00", "2026-02-15T00:00:00", "day", "2026-02-14T00:00:00", "2026-02-14T00:00:00", "2026-02-15T00:00:00"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newUsageSpan(model.At(at(tt.start)), model.At(at(tt.end)), tt.by, at("2026-02-15T10:15:00"))
			from, to, table := s.request()
			if from != model.At(at(tt.from)) || to != model.At(at(tt.to)) || table != tt.table {
				t.Errorf("requests the time from %v to %v, in the table of each %s", from.Go().In(berlin), to.Go().In(berlin), table)
			}
			first, next, ok := s.period(model.At(at(tt.row)))
			if ok != (tt.first != "") || first != model.At(at(tt.first)) || next != model.At(at(tt.next)) {
				t.Errorf("the row belongs to the period from %v to %v", first.Go().In(berlin), next.Go().In(berlin))
			}
		})
	}
}
