package handlers

import (
	"time"

	"schedrestd/internal/zone"
	"schedrestd/model"
)

// A usageSpan is the time about which a report is, and its division into periods.
// slurmdbd chooses its table from the requested time (model.UsageTable), so the
// request may have to ask for a longer time than the report is about.
type usageSpan struct {
	start, end time.Time // on the hour, in the local time zone
	by         string    // "hour", "day", "month", or "" for one period
	now        time.Time
}

// newUsageSpan returns the span for the values of a request, which may be 0. It
// consists of all hours that the requested time touches, as in sreport of Slurm
// 26.05; older ones round to the nearest hour. Without values, it is yesterday.
func newUsageSpan(start, end model.Time, by string, now time.Time) usageSpan {
	s := usageSpan{start: zone.Midnight(now, -1), end: zone.Midnight(now, 0), by: by, now: now}
	if end != 0 {
		s.end = zone.Hour(earlier(end.Go().In(now.Location()), now).Add(time.Hour - 1))
	}
	if start != 0 {
		s.start = zone.Hour(start.Go().In(now.Location()))
	}
	if end == 0 && !s.start.Before(s.end) { // it begins today
		s.end = zone.Hour(now.Add(time.Hour - 1))
	}
	if s.end.Sub(s.start) < time.Hour {
		s.end = s.start.Add(time.Hour)
	}
	return s
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// request returns the time for which to request usage, and the period of the
// table from which the answer comes.
func (s *usageSpan) request() (start, end model.Time, table string) {
	from, to := s.start, s.end
	switch table = model.UsageTable(from, to, s.now); {
	case s.by == "hour" && table != "hour":
		to = to.Add(time.Hour)
	case s.by == "day" && table == "month":
		from = zone.Midnight(from, -1)
	}
	return model.At(from), model.At(to), model.UsageTable(from, to, s.now)
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
	from, to := zone.Period(at, s.by)
	if from.Before(s.start) {
		from = s.start
	}
	return model.At(from), model.At(earlier(to, s.end)), true
}

// rolledUpBy returns the end of the time whose usage is in a row of slurmdbd's
// table, but at most the end of the span.
func (s *usageSpan) rolledUpBy(row model.Time, table string) model.Time {
	_, next := zone.Period(row.Go().In(s.now.Location()), table)
	return model.At(earlier(next, s.end))
}
