package script

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/internal/zone"
)

// parseDuration parses MINUTES, MIN:SEC, H:MIN:SEC, DAYS-H, DAYS-H:MIN or
// DAYS-H:MIN:SEC, or a word for an infinite time.
func parseDuration(v string) (d time.Duration, infinite bool, err error) {
	switch strings.ToLower(v) {
	case "-1", "infinite", "unlimited":
		return 0, true, nil
	}
	d, err = parseFinite(v)
	return d, false, err
}

func parseFinite(v string) (time.Duration, error) {
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
	count := strings.TrimRight(strings.ToUpper(v), "BKMGT")
	unit := strings.TrimSuffix(strings.ToUpper(v)[len(count):], "B")
	n, err := strconv.ParseUint(count, 10, 40)
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

// clock maps words to times of day.
var clock = map[string]string{"midnight": "00:00", "elevenses": "11:00", "noon": "12:00", "fika": "15:00", "teatime": "16:00"}

var (
	later     = regexp.MustCompile(`^now(?:\+(\d+)([a-z]*))?$`)
	dateForm  = regexp.MustCompile(`^(?:(\d{4})-(\d\d?)-(\d\d?)|(\d\d?)/(\d\d?)(?:/(\d\d))?|today|tomorrow)`)
	clockForm = regexp.MustCompile(`^(\d\d?):(\d\d)(?::(\d\d))?(am|pm)?$`)
)

// parseMoment parses a time as sbatch does. It is one of these:
//
//   - now
//   - now+N, followed by seconds (the default), minutes, hours, days or weeks
//   - a date, with or without a time: 2026-11-30, 11/30, 11/30/26, today or
//     tomorrow
//   - a time of day: today, or tomorrow if that time has passed
func parseMoment(v string, now time.Time) (time.Time, error) {
	errInvalid := errs.New(errs.Malformed, "not a time").
		WithHint("a time is written like now+2hours, 15:30, tomorrow, 2026-11-30 or 2026-11-30T15:30")
	lower := strings.ToLower(v)
	if m := later.FindStringSubmatch(lower); m != nil {
		if m[1] == "" {
			return now, nil
		}
		n, err := strconv.ParseUint(m[1], 10, 31)
		unit, known := map[string]time.Duration{"": time.Second, "second": time.Second, "minute": time.Minute, "hour": time.Hour,
			"day": 24 * time.Hour, "week": 7 * 24 * time.Hour}[strings.TrimSuffix(m[2], "s")]
		if err != nil || !known || m[2] == "s" {
			return time.Time{}, errInvalid
		}
		return now.Add(time.Duration(n) * unit), nil
	}
	year, month, day := now.Date()
	date := dateForm.FindStringSubmatch(lower)
	rest := lower
	if date != nil {
		rest = lower[len(date[0]):]
		if rest != "" && rest[0] != 't' && rest[0] != '-' && rest[0] != ' ' || len(rest) == 1 {
			return time.Time{}, errInvalid
		}
		rest = strings.TrimLeft(rest, "t- ")
	}
	if word, known := clock[rest]; known {
		rest = word
	} else if date != nil && strings.HasPrefix(lower[len(date[0]):], "t") && clock["t"+rest] != "" {
		rest = clock["t"+rest]
	}
	var hour, minute, second int
	if rest != "" || date == nil {
		var ok bool
		if hour, minute, second, ok = parseClock(rest); !ok {
			return time.Time{}, errInvalid
		}
	}
	switch {
	case date == nil:
		if zone.Date(year, month, day, hour, minute, second, now.Location()).Before(now) {
			day++
		}
	case date[0] == "tomorrow":
		day++
	case date[0] == "today":
	default:
		given := date[1] != "" || date[6] != ""
		switch {
		case date[1] != "":
			year, month, day = digits(date[1]), time.Month(digits(date[2])), digits(date[3])
		case date[6] != "":
			year, month, day = 2000+digits(date[6]), time.Month(digits(date[4])), digits(date[5])
		default:
			month, day = time.Month(digits(date[4])), digits(date[5])
		}
		if !given && time.Date(year, month, day, hour, minute, second, 0, now.Location()).Before(now) {
			year++
		}
		if at := time.Date(year, month, day, 0, 0, 0, 0, time.UTC); at.Month() != month || at.Day() != day {
			return time.Time{}, errInvalid
		}
	}
	return zone.Date(year, month, day, hour, minute, second, now.Location()), nil
}

// parseClock parses a time of day such as 15:30, 15:30:20 or 3:30pm.
func parseClock(text string) (hour, minute, second int, ok bool) {
	m := clockForm.FindStringSubmatch(text)
	if m == nil {
		return 0, 0, 0, false
	}
	hour, minute, second = digits(m[1]), digits(m[2]), digits(m[3])
	ok = m[4] == "" || hour <= 12
	switch {
	case m[4] == "pm" && hour < 12:
		hour += 12
	case m[4] == "am" && hour == 12:
		hour = 0
	}
	return hour, minute, second, ok && hour <= 23 && minute <= 59 && second <= 59
}

// digits returns the number that a few digits stand for.
func digits(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}
