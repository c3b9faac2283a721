package api

import (
	"testing"
	"time"
)

// TestTimeWords checks the forms of times that sacct's manual describes. In
// this test, the current time is 14:30:15 on a Sunday in November.
func TestTimeWords(t *testing.T) {
	zone := time.FixedZone("", 3600)
	now := time.Date(2026, 11, 22, 14, 30, 15, 500, zone)
	day := func(year, month, day, hour, minute, second int) int64 {
		return time.Date(year, time.Month(month), day, hour, minute, second, 0, zone).Unix()
	}
	for text, want := range map[string]int64{
		"0": 0, "1": 1, "007": 7, "1700000000": 1_700_000_000, "1700000000.75": 1_700_000_000, "4000000000": 4_000_000_000,
		"uts1700000000": 1_700_000_000, "UTS1700000000": 1_700_000_000,
		"now": now.Unix(), "NOW": now.Unix(), "now-1hour": now.Unix() - 3600, "now+2days": now.Unix() + 2*86400,
		"now-90": now.Unix() - 90, "now 1week": now.Unix() + 7*86400, "now - 3 minutes": now.Unix() - 180, "Now-1Second": now.Unix() - 1,
		"today": day(2026, 11, 22, 0, 0, 0), "tomorrow": day(2026, 11, 23, 0, 0, 0), "TEATIME tomorrow": day(2026, 11, 23, 16, 0, 0), "TODAY": day(2026, 11, 22, 0, 0, 0),
		"today-10:00": day(2026, 11, 22, 10, 0, 0), "noon tomorrow": day(2026, 11, 23, 12, 0, 0), "midnight today": day(2026, 11, 22, 0, 0, 0),
		"midnight": day(2026, 11, 23, 0, 0, 0), "noon": day(2026, 11, 23, 12, 0, 0), "elevenses": day(2026, 11, 23, 11, 0, 0),
		"fika": day(2026, 11, 22, 15, 0, 0), "teatime": day(2026, 11, 22, 16, 0, 0),
		"14:30": day(2026, 11, 23, 14, 30, 0), "14:31": day(2026, 11, 22, 14, 31, 0), "9:05:07": day(2026, 11, 23, 9, 5, 7),
		"3:00pm": day(2026, 11, 22, 15, 0, 0), "12:00 AM": day(2026, 11, 23, 0, 0, 0), "12:15pm": day(2026, 11, 23, 12, 15, 0),
		"2024-01-02": day(2024, 1, 2, 0, 0, 0), "2024-1-2": day(2024, 1, 2, 0, 0, 0), "2024-01-02T10:00": day(2024, 1, 2, 10, 0, 0),
		"2024-01-02T10:00:03": day(2024, 1, 2, 10, 0, 3), "2024-01-02 10:00": day(2024, 1, 2, 10, 0, 0), "10:00 2024-01-02": day(2024, 1, 2, 10, 0, 0),
		"01/02/24": day(2024, 1, 2, 0, 0, 0), "1/2/24": day(2024, 1, 2, 0, 0, 0), "01.02.24": day(2024, 1, 2, 0, 0, 0), "010224-10:00": day(2024, 1, 2, 10, 0, 0),
		"01/02/24-10:00:59": day(2024, 1, 2, 10, 0, 59), "12/24": day(2026, 12, 24, 0, 0, 0), "01/02": day(2027, 1, 2, 0, 0, 0), "11/22": day(2027, 11, 22, 0, 0, 0),
		"11/22-15:00": day(2026, 11, 22, 15, 0, 0), "02/29/24": day(2024, 2, 29, 0, 0, 0),
		"2024-01-02T10:00:00Z": time.Date(2024, 1, 2, 10, 0, 0, 0, time.UTC).Unix(), "2024-01-02T10:00:00-02:00": time.Date(2024, 1, 2, 12, 0, 0, 0, time.UTC).Unix(),
		"2024-01-02T10:00:00 02:00": time.Date(2024, 1, 2, 8, 0, 0, 0, time.UTC).Unix(), // the "+" was not escaped
	} {
		if got, err := parseTimeText(text, now); err != nil || int64(got) != want {
			t.Errorf("%q: %d (%v), %v; want %d (%v)", text, got, time.Unix(int64(got), 0).In(zone), err, want, time.Unix(want, 0).In(zone))
		}
	}
	for _, text := range []string{
		"", " ", "-", "T", "-1", "-0102", "+1", "1e9", "0x10", "9999999999999999999", "yesterday", "nowish", "now-", "now-1h", "now+1month", "now-99999999999",
		"now-9999999999weeks", "now-1hour 10:00", "uts", "utsx", "uts-5", "today tomorrow", "noon midnight", "10:00 11:00", "24:00", "10:60", "10:00:60",
		"13:00pm", "10:0", "1:", "2024-02-30", "02/30/24", "2024-13-01", "2024-00-10", "00/10/24", "01/02/2024", "20240102T10:00", "1969-12-01",
		"2024-01-02X10:00", "today\x00", "today;", "١٢:٠٠", "null", "infinity", "NaN",
	} {
		if got, err := parseTimeText(text, now); err == nil {
			t.Errorf("%q: taken for %d (%v)", text, got, time.Unix(int64(got), 0).In(zone))
		}
	}
}

// TestSummerTime tests times around the beginning of summer time. The day on
// which summer time begins has only 23 hours.
func TestSummerTime(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skipf("needs a table of time zones: %v", err)
	}
	now := time.Date(2026, 3, 28, 23, 30, 0, 0, zone) // that night, the clock jumps from 2 to 3
	for text, want := range map[string]int64{
		"tomorrow 12:00": time.Date(2026, 3, 29, 10, 0, 0, 0, time.UTC).Unix(),
		"now+4hours":     time.Date(2026, 3, 29, 2, 30, 0, 0, time.UTC).Unix(),
		"now+1day":       now.Unix() + 86400,
		"2:30":           time.Date(2026, 3, 29, 1, 30, 0, 0, time.UTC).Unix(), // the clock skips this time; shown as 3:30
	} {
		if got, err := parseTimeText(text, now); err != nil || int64(got) != want {
			t.Errorf("%s: %d, %v; want %d", text, got, err, want)
		}
	}
}

// TestSkippedMidnight tests times in a zone in which summer time begins at
// midnight, so that a day begins at 1:00.
func TestSkippedMidnight(t *testing.T) {
	zone, err := time.LoadLocation("America/Santiago")
	if err != nil {
		t.Skipf("needs a table of time zones: %v", err)
	}
	now := time.Date(2026, 9, 5, 0, 30, 0, 0, zone)
	begin := time.Date(2026, 9, 6, 4, 0, 0, 0, time.UTC).Unix()
	for text, want := range map[string]int64{
		"2026-09-06": begin, "tomorrow": begin, "midnight": begin, "09/06/26-00:00": begin, "0:30 tomorrow": begin + 1800, "0:15": begin + 900,
	} {
		if got, err := parseTimeText(text, now); err != nil || int64(got) != want {
			t.Errorf("%s: %d, %v; want %d", text, got, err, want)
		}
	}
}
