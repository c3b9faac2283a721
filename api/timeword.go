package api

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"schedrestd/api/schema"
	"schedrestd/internal/zone"
	"schedrestd/model"
)

// TimeText describes the forms in which a request may contain a time. It is
// used in place of a unit, as an argument of schema.Unit.
const TimeText = UnixTime + ", or in words: 2024-01-02T10:00, 01/02/24, 10:00, today, tomorrow, noon, midnight, now, now-1hour; " +
	"in the gateway's time zone, unless the text ends with another"

// instant returns the type of a parameter that is a time.
func instant() schema.Type[model.Time] {
	return asText(func(s string) (model.Time, error) { return parseTimeText(s, time.Now()) })
}

// expression returns a function that compiles the regular expression with the
// given text on the first call, and returns it. Few requests need these regular
// expressions, and compiling all of them at start-up would take a tenth of a
// worker's start-up time.
func expression(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

var (
	timeSeconds = expression(`^(?:[uU][tT][sS])?(\d{1,18})(?:\.\d*)?$`)
	// When a query is parsed, a "+" that the client did not escape becomes a
	// space. After "now", a space has no other meaning.
	timeNow    = expression(`(?i)^now(?:\s*([-+ ])\s*(\d{1,10})\s*(seconds?|minutes?|hours?|days?|weeks?)?)?$`)
	timeBlanks = expression(`^[-\s]*(?:T?(\d.*)|(\D.*)|)$`)
	timeWord   = expression(`(?i)^(today|tomorrow|midnight|noon|elevenses|fika|teatime)`)
	timeClock  = expression(`(?i)^(\d{1,2}):(\d\d)(?::(\d\d))?(?:\s*(am|pm))?`)
	timeDate   = expression(`^(\d{4})-(\d{1,2})-(\d{1,2})`)
	timeShort  = expression(`^(\d{1,2})[./]?(\d{1,2})(?:[./]?(\d\d))?`)
)

var (
	timeUnits = map[string]int64{"": 1, "second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 7 * 86400}
	timeHours = map[string]int{"midnight": 0, "noon": 12, "elevenses": 11, "fika": 15, "teatime": 16}
)

// parseTimeText parses a time in one of the forms that Slurm's manuals or RFC
// 3339 describe. If the time has no date, or the date has no year,
// parseTimeText returns the next occurrence.
//
// A text that consists only of digits is a number of seconds since 1970, never
// a date of the form MMDDYY. parseTimeText refuses two kinds of text that Slurm
// accepts. The first contains two dates or two times of day; Slurm uses the
// last one. The second contains an impossible date, such as the 30th of
// February; Slurm uses another day.
func parseTimeText(s string, now time.Time) (model.Time, error) {
	errSyntax := fmt.Errorf("expected a time such as 1700000000 (seconds since 1970), 2024-01-02T10:00, 01/02/24, 10:00, today, noon or now-1hour, got %q", schema.Shorten(s))
	at, ok := time.Time{}, false
	switch {
	case timeSeconds().MatchString(s):
		n, err := strconv.ParseInt(timeSeconds().FindStringSubmatch(s)[1], 10, 64)
		at, ok = time.Unix(n, 0), err == nil
	case timeNow().MatchString(s):
		at, ok = fromNow(timeNow().FindStringSubmatch(s), now), true
	case !strings.HasPrefix(s, "-"): // a negative number is not a date
		var err error
		if at, err = time.Parse(time.RFC3339, strings.Replace(s, " ", "+", 1)); err != nil {
			at, err = dayAndHour(s, now)
		}
		ok = err == nil
	}
	if !ok || at.Unix() < 0 {
		return 0, errSyntax
	}
	return model.At(at), nil
}

// fromNow returns the current time plus or minus an offset, such as +2hours.
func fromNow(m []string, now time.Time) time.Time {
	n, _ := strconv.ParseInt(m[2], 10, 64) // at most ten digits, or none
	n *= timeUnits[strings.TrimSuffix(strings.ToLower(m[3]), "s")]
	if m[1] == "-" {
		n = -n
	}
	return time.Unix(now.Unix()+n, 0)
}

// dayAndHour parses a text that contains a day, a time of day, or both in
// either order.
func dayAndHour(s string, now time.Time) (time.Time, error) {
	p := timeParts{now: now}
	for s != "" {
		var err error
		if s, err = p.parsePart(timeBlanks().ReplaceAllString(s, "$1$2")); err != nil {
			return time.Time{}, err
		}
	}
	return p.time()
}

// timeParts holds the parts of a time that have been parsed so far.
type timeParts struct {
	now                  time.Time
	year, month, day     int // 0 if absent
	hour, minute, second int
	days, hours          int // number of times that each occurred
}

var errNoTime = errors.New("not a time")

// parsePart parses one part at the beginning of s.
func (p *timeParts) parsePart(s string) (rest string, err error) {
	if s == "" {
		return "", nil
	}
	number := func(s string) int { n, _ := strconv.Atoi(s); return n }
	if m := timeWord().FindString(s); m != "" {
		p.parseWord(strings.ToLower(m))
		return s[len(m):], nil
	}
	if m := timeClock().FindStringSubmatch(s); m != nil {
		p.hour, p.minute, p.second = number(m[1]), number(m[2]), number(m[3])
		p.hours++
		return s[len(m[0]):], p.parseMeridiem(strings.ToLower(m[4]))
	}
	if m := timeDate().FindStringSubmatch(s); m != nil {
		p.year, p.month, p.day = number(m[1]), number(m[2]), number(m[3])
		p.days++
		return s[len(m[0]):], nil
	}
	if m := timeShort().FindStringSubmatch(s); m != nil {
		p.month, p.day = number(m[1]), number(m[2])
		if m[3] != "" {
			p.year = 2000 + number(m[3])
		}
		p.days++
		return s[len(m[0]):], nil
	}
	return "", errNoTime
}

// parseWord parses a word that stands for a day or a time of day.
func (p *timeParts) parseWord(word string) {
	if hour, ok := timeHours[word]; ok {
		p.hour, p.minute, p.second = hour, 0, 0
		p.hours++
		return
	}
	p.setDate(0)
	if word == "tomorrow" {
		p.setDate(1)
	}
	p.days++
}

// setDate sets the date to the given number of days after today.
func (p *timeParts) setDate(days int) {
	year, month, day := p.now.Date()
	year, month, day = time.Date(year, month, day+days, 0, 0, 0, 0, time.UTC).Date() // not in a time zone, where a day may have no midnight
	p.year, p.month, p.day = year, int(month), day
}

// parseMeridiem parses am or pm. Noon is 12:00 pm.
func (p *timeParts) parseMeridiem(word string) error {
	switch {
	case word == "":
	case p.hour > 12:
		return errNoTime
	case word == "pm" && p.hour < 12:
		p.hour += 12
	case word == "am" && p.hour == 12:
		p.hour = 0
	}
	return nil
}

// time returns the time that the parts describe.
func (p *timeParts) time() (time.Time, error) {
	if p.days > 1 || p.hours > 1 || p.days+p.hours == 0 || p.hour > 23 || p.minute > 59 || p.second > 59 {
		return time.Time{}, errNoTime
	}
	if p.days == 0 {
		if p.setDate(0); !p.date().After(p.now) {
			p.setDate(1)
		}
	}
	if p.year == 0 {
		if p.year = p.now.Year(); !p.date().After(p.now) {
			p.year++
		}
	}
	if _, month, day := time.Date(p.year, time.Month(p.month), p.day, 0, 0, 0, 0, time.UTC).Date(); int(month) != p.month || day != p.day {
		return time.Time{}, errNoTime // such as the 30th of February
	}
	return p.date(), nil
}

func (p *timeParts) date() time.Time {
	return zone.Date(p.year, time.Month(p.month), p.day, p.hour, p.minute, p.second, p.now.Location())
}
