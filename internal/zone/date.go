package zone

import "time"

// maxOffset exceeds the offset from UTC of every time zone.
const maxOffset = 8 * 24 * time.Hour

// Date returns the time with the given date and time of day in loc. Values
// outside their usual ranges are carried over, as in time.Date.
//
// When the clock is set forward, it skips some times. Date uses the offset from
// UTC before the change: if the clock is set from 2:00 to 3:00, 2:30 means
// 3:30. When the clock is set back, some times occur twice. Date returns the
// first of the two. Both rules are those of RFC 5545, section 3.3.5. In glibc
// the first rule is the same. For a repeated time, the result of glibc's mktime
// depends on the process's earlier calls. With time.Date, both results depend on
// the time zone.
func Date(year int, month time.Month, day, hour, minute, second int, loc *time.Location) time.Time {
	wall := time.Date(year, month, day, hour, minute, second, 0, time.UTC)
	at := wall.Add(-maxOffset).In(loc)
	_, before := at.Zone()
	// Each iteration is about a period with one offset.
	for {
		start, end := at.ZoneBounds()
		_, offset := at.Zone()
		result := wall.Add(-time.Duration(offset) * time.Second).In(loc)
		switch {
		case result.Before(start): // the clock skips this time when the period begins
			return wall.Add(-time.Duration(before) * time.Second).In(loc)
		case end.IsZero() || result.Before(end):
			return result
		}
		at, before = end, offset
	}
}
