package api

import (
	"fmt"
	"strconv"
	"strings"

	"schedrestd/api/schema"
	"schedrestd/model"
)

// cron is a cron entry as a client sends it. It contains either five fields or
// one string, the specification.
type cron struct {
	fields        [5]string // minute, hour, day of month, month, day of week
	specification string
	lineStart     uint32
	lineEnd       uint32
}

// cronWild contains a flag for each field of a cron entry. A flag means that
// its field is "*". The gateway ignores these flags in requests, because the
// fields themselves show which of them are "*".
var cronWild = schema.Words("cron_entry_flags",
	schema.Bit("WILD_MINUTE", uint32(1)<<1),
	schema.Bit("WILD_HOUR", uint32(1)<<2),
	schema.Bit("WILD_DAY_OF_MONTH", uint32(1)<<3),
	schema.Bit("WILD_MONTH", uint32(1)<<4),
	schema.Bit("WILD_DAY_OF_WEEK", uint32(1)<<5),
)

// schedule returns the type of a cron entry in a job description. An entry
// without a schedule is ignored with a warning: generated clients send an entry
// with empty fields.
func schedule() schema.Type[cron] { return scheduleType{cronEntry.Type()} }

type scheduleType struct{ schema.Type[cron] }

func (t scheduleType) Parser(v schema.View) func(*schema.Report, *schema.Value, *cron) bool {
	parse := t.Type.Parser(v)
	return func(r *schema.Report, doc *schema.Value, into *cron) bool {
		if !parse(r, doc, into) {
			return false
		}
		if into.fields == [5]string{} && strings.TrimSpace(into.specification) == "" {
			r.Warn(doc, "has no schedule, ignored")
			return false
		}
		return true
	}
}

var cronEntry = schema.Object("cron_entry", func() schema.Fields[cron] {
	return schema.Fields[cron]{
		schema.Ignore[cron]("flags", cronWild.Type, "Ignored: the fields themselves show which of them are \"*\""),
		schema.F("minute", schema.String, func(c *cron) *string { return &c.fields[0] }, "Minutes, such as \"0,30\" or \"0-59\""),
		schema.F("hour", schema.String, func(c *cron) *string { return &c.fields[1] }, "Hours, such as \"8-17\""),
		schema.F("day_of_month", schema.String, func(c *cron) *string { return &c.fields[2] }, "Days of the month"),
		schema.F("month", schema.String, func(c *cron) *string { return &c.fields[3] }, "Months"),
		schema.F("day_of_week", schema.String, func(c *cron) *string { return &c.fields[4] }, "Days of the week; 0 is Sunday"),
		schema.F("specification", schema.String, func(c *cron) *string { return &c.specification }, "Minute, hour, day of the month, month and day of the week, separated by spaces"),
		schema.Ignore[cron]("command", schema.String, "Ignored: the job runs its script"),
		schema.Group("line", "Lines of the entry in the user's crontab", schema.Fields[cron]{
			schema.F("start", schema.Int32, func(c *cron) *uint32 { return &c.lineStart }, "First line of the entry", schema.Bare),
			schema.F("end", schema.Int32, func(c *cron) *uint32 { return &c.lineEnd }, "Last line of the entry", schema.Bare),
		}),
	}
})

// cronFields lists the five fields of a cron entry, each with its lowest value,
// its highest value, and the length of its bitmap in the protocol.
var cronFields = [5]struct {
	name            string
	lowest, highest uint64
	bits            uint32
}{
	{"minute", 0, 59, 61}, {"hour", 0, 23, 25}, {"day of month", 1, 31, 32}, {"month", 1, 12, 13}, {"day of week", 0, 7, 8},
}

// cronJob is the job flag for a job that a cron entry starts.
const cronJob = 1 << 22

func setCron(d *model.JobDesc, c cron) error {
	if c.specification != "" {
		words := strings.Fields(c.specification)
		if len(words) < len(c.fields) {
			return fmt.Errorf("expected five fields, got %d", len(words))
		}
		copy(c.fields[:], words)
	}
	d.Cron = model.CronEntry{Set: 1, Spec: strings.Join(c.fields[:], " "), LineStart: c.lineStart, LineEnd: c.lineEnd}
	maps := [5]*model.Bitmap{&d.Cron.Minute, &d.Cron.Hour, &d.Cron.DayOfMonth, &d.Cron.Month, &d.Cron.DayOfWeek}
	for i, text := range c.fields {
		f := cronFields[i]
		*maps[i] = model.Bitmap{Len: f.bits, Set: true, Bits: make([]byte, (f.bits+7)/8)}
		if err := setCronBits(text, f.lowest, f.highest, maps[i]); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		if text == "*" {
			d.Cron.Flags |= 1 << (i + 1)
		}
	}
	d.Flags |= cronJob
	return nil
}

// setCronBits parses a field such as "*", "*/5", "1-5", "10-50/10" or a
// comma-separated list of these. It sets the bit of each value that the field
// selects.
func setCronBits(text string, lowest, highest uint64, into *model.Bitmap) error {
	for part := range strings.SplitSeq(text, ",") {
		values, stepText, stepped := strings.Cut(part, "/")
		from, to, ok := parseRange(values)
		if values == "*" {
			from, to, ok = lowest, highest, true
		}
		if !ok || from < lowest || to > highest {
			return fmt.Errorf("%q is not between %d and %d", schema.Shorten(values), lowest, highest)
		}
		step := uint64(1)
		if stepped {
			var err error
			if step, err = strconv.ParseUint(stepText, 10, 32); err != nil || step == 0 {
				return fmt.Errorf("invalid step %q", schema.Shorten(stepText))
			}
		}
		for n := from; n <= to; n += step {
			into.Bits[n/8] |= 1 << (n % 8)
		}
	}
	return nil
}
