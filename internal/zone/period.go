package zone

import "time"

// Hour returns the beginning of the hour in which t is.
func Hour(t time.Time) time.Time {
	return t.Add(-time.Duration(t.Minute())*time.Minute - time.Duration(t.Second())*time.Second - time.Duration(t.Nanosecond()))
}

// Midnight returns the beginning of the day that is a number of days after that of
// t.
func Midnight(t time.Time, days int) time.Time {
	year, month, day := t.Date()
	return Date(year, month, day+days, 0, 0, 0, t.Location())
}

// Period returns the beginning of the period that contains t, and that of the next
// one. The length is "hour", "day" or "month".
func Period(t time.Time, length string) (start, next time.Time) {
	switch length {
	case "hour":
		start = Hour(t)
		return start, start.Add(time.Hour)
	case "day":
		return Midnight(t, 0), Midnight(t, 1)
	}
	year, month, _ := t.Date()
	return Date(year, month, 1, 0, 0, 0, t.Location()), Date(year, month+1, 1, 0, 0, 0, t.Location())
}
