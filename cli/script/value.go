package script

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/internal/zone"
)

// parseDuration parses MINUTES, MIN:SEC, H:MIN:SEC, DAYS-H, DAYS-H:MIN or
// DAYS-H:MIN:SEC.
func parseDuration(v string) (time.Duration, error) {
	errInvalid := errs.New(errs.Malformed, "not a time").
		WithHint("a time is MINUTES, MIN:SEC, HOURS:MIN:SEC, DAYS-HOURS or DAYS-HOURS:MIN:SEC")
	days, rest, withDays := strings.Cut(v, "-")
	if !withDays {
		days, rest = "0", v
	}
	fields := strings.Split(rest, ":")
	if len(fields) > 3 {
		return 0, errInvalid
	}
	var n [3]uint64
	d, err := strconv.ParseUint(days, 10, 16)
	for i, f := range fields {
		var parseErr error
		if n[i], parseErr = strconv.ParseUint(f, 10, 31); parseErr != nil {
			err = parseErr
		}
	}
	if err != nil {
		return 0, errInvalid
	}
	units := []time.Duration{time.Hour, time.Minute, time.Second}
	switch {
	case !withDays && len(fields) == 1:
		units = []time.Duration{time.Minute}
	case !withDays && len(fields) == 2:
		units = []time.Duration{time.Minute, time.Second}
	}
	total := float64(d) * 24 * float64(time.Hour)
	sum := time.Duration(d) * 24 * time.Hour
	for i := range fields {
		total += float64(n[i]) * float64(units[i])
		sum += time.Duration(n[i]) * units[i]
	}
	if total > float64(math.MaxInt64) {
		return 0, errInvalid
	}
	return sum, nil
}

// parseMemory parses an amount of memory and returns it in MiB, rounded up. The
// amount may have the suffix K, M, G or T. Without a suffix, it is in MiB.
func parseMemory(v string) (uint64, error) {
	errInvalid := errors.New("not an amount such as 500M or 10G")
	digits := strings.TrimRight(strings.ToUpper(v), "BKMGT")
	unit := strings.TrimSuffix(strings.ToUpper(v)[len(digits):], "B")
	n, err := strconv.ParseUint(digits, 10, 40)
	if err != nil {
		return 0, errInvalid
	}
	switch unit {
	case "K":
		return (n + 1023) / 1024, nil
	case "", "M":
		return n, nil
	case "G":
		return n << 10, nil
	case "T":
		return n << 20, nil
	}
	return 0, errInvalid
}

// parseBegin parses the value of --begin. The value is one of these:
//
//   - now
//   - now+N, followed by seconds (the default), minutes, hours, days or weeks
//   - a date, with or without a time
//   - a time of day: today, or tomorrow if that time has passed
func parseBegin(v string, now time.Time) (time.Time, error) {
	lower := strings.ToLower(v)
	if lower == "now" {
		return now, nil
	}
	if count, ok := strings.CutPrefix(lower, "now+"); ok {
		digits := strings.TrimRight(count, "abcdefghijklmnopqrstuvwxyz")
		n, err := strconv.ParseUint(digits, 10, 31)
		unit, known := map[string]time.Duration{"": time.Second, "second": time.Second, "minute": time.Minute, "hour": time.Hour,
			"day": 24 * time.Hour, "week": 7 * 24 * time.Hour}[strings.TrimSuffix(count[len(digits):], "s")]
		if err == nil && known {
			return now.Add(time.Duration(n) * unit), nil
		}
	}
	for _, form := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"} {
		if at, err := time.Parse(form, strings.ToUpper(v)); err == nil {
			return zone.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), now.Location()), nil
		}
	}
	for _, form := range []string{"15:04:05", "15:04"} {
		if at, err := time.Parse(form, v); err == nil {
			start := zone.Date(now.Year(), now.Month(), now.Day(), at.Hour(), at.Minute(), at.Second(), now.Location())
			if start.Before(now) {
				start = zone.Date(now.Year(), now.Month(), now.Day()+1, at.Hour(), at.Minute(), at.Second(), now.Location())
			}
			return start, nil
		}
	}
	return time.Time{}, errs.New(errs.Malformed, "not a time").
		WithHint("a start time is written like now+2hours, 15:30, 2026-11-30 or 2026-11-30T15:30")
}
