package handlers

import (
	"time"

	"schedrestd/internal/zone"
	"schedrestd/model"
)

// A usageSpan is the time about which a report is, and its division into periods.
//
// slurmdbd keeps usage in three tables: by hour, by day and by month. It chooses
// the table from the requested time alone: that of months if the time consists of
// whole months, that of days if it consists of whole days, and otherwise, or if
// the time ends in the future, that of hours. So the request may have to ask for a
// longer time than the report is about.
type usageSpan struct {
	start, end time.Time // on the hour, in the local time zone
	by         string    // "hour", "day", "month", or "" for one period
	now        time.Time
}

// newUsageSpan returns the span for the values of a request, which may be 0. It
// consists of all hours that the requested time touches, as in sreport of Slurm
// 26.05; older ones round to the nearest hour. Without values, it is yesterday.
func newUsageSpan(start, end model.Time, by string, now time.Time) usageSpan {
	s := usageSpan{start: midnight(now, -1), end: midnight(now, 0), by: by, now: now}
	if end != 0 {
		s.end = hourOf(earlier(end.Go().In(now.Location()), now).Add(time.Hour - 1))
	}
	if start != 0 {
		s.start = hourOf(start.Go().In(now.Location()))
	}
	if s.end.Sub(s.start) < time.Hour {
		s.end = s.start.Add(time.Hour)
	}
	return s
}

// midnight returns the beginning of the day that is a number of days after t.
func midnight(t time.Time, days int) time.Time {
	year, month, day := t.Date()
	return zone.Date(year, month, day+days, 0, 0, 0, t.Location())
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// hourOf returns the beginning of the hour in which t is.
func hourOf(t time.Time) time.Time {
	return t.Add(-time.Duration(t.Minute())*time.Minute - time.Duration(t.Second())*time.Second - time.Duration(t.Nanosecond()))
}

// tableOf returns the period of the table that slurmdbd chooses.
func (s *usageSpan) tableOf(start, end time.Time) string {
	switch {
	case start.Hour() != 0 || end.Hour() != 0 || end.Sub(start) < 24*time.Hour || end.After(s.now):
		return "hour"
	case start.Day() == 1 && end.Day() == 1 && end.Sub(start) > 24*time.Hour:
		return "month"
	}
	return "day"
}

// request returns the time for which to request usage, and the period of the
// table from which the answer comes.
func (s *usageSpan) request() (start, end model.Time, table string) {
	from, to := s.start, s.end
	switch table = s.tableOf(from, to); {
	case s.by == "hour" && table != "hour":
		to = to.Add(time.Hour)
	case s.by == "day" && table == "month":
		from = midnight(from, -1)
	}
	return model.At(from), model.At(to), s.tableOf(from, to)
}

// periodOf returns the beginning of the period of the given length that contains
// t, and that of the next one.
func periodOf(t time.Time, length string) (start, next time.Time) {
	year, month, _ := t.Date()
	switch length {
	case "hour":
		start = hourOf(t)
		return start, start.Add(time.Hour)
	case "day":
		return midnight(t, 0), midnight(t, 1)
	}
	return zone.Date(year, month, 1, 0, 0, 0, t.Location()), zone.Date(year, month+1, 1, 0, 0, 0, t.Location())
}

// period returns the period of the report to which a row of slurmdbd's table
// belongs. If it belongs to none, ok is false.
func (s *usageSpan) period(row model.Time) (start, end model.Time, ok bool) {
	at := row.Go().In(s.now.Location())
	if at.Before(s.start) || !at.Before(s.end) {
		return 0, 0, false
	}
	if s.by == "" {
		return model.At(s.start), model.At(s.end), true
	}
	from, to := periodOf(at, s.by)
	if from.Before(s.start) {
		from = s.start
	}
	return model.At(from), model.At(earlier(to, s.end)), true
}

// rolledUpBy returns the end of the time whose usage is in a row of slurmdbd's
// table, but at most the end of the span.
func (s *usageSpan) rolledUpBy(row model.Time, table string) model.Time {
	_, next := periodOf(row.Go().In(s.now.Location()), table)
	return model.At(earlier(next, s.end))
}
