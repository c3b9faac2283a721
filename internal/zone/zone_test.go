package zone

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// american is the rule for the eastern United States since 2007.
const american = "EST5EDT,M3.2.0,M11.1.0"

// load returns a zone of Go's or the machine's database.
func load(t *testing.T, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Skipf("needs a database of time zones: %v", err)
	}
	return loc
}

// TestFind checks the values of TZ: names, paths and POSIX strings.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file := write("Eastern", rule(american))
	garbage := write("garbage", []byte("TZif garbage"))
	empty := write("empty", nil)
	long := write("long", append(rule(american), make([]byte, maxSize)...))
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		tz           string
		wantJanuary  string // hour of 2027-01-15T12:00Z
		wantJuly     string // hour of 2027-07-15T12:00Z
		wantRejected bool
	}{
		{"", "12", "12", false},
		{":", "12", "12", false},
		{"UTC", "12", "12", false},
		{"UTC0", "12", "12", false},
		{american, "07", "08", false},
		{"EST5EDT", "07", "08", false}, // a zone without rules gets those of the United States
		{"EST5", "07", "07", false},
		{"<-03>3", "09", "09", false},
		{"<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", "23", "22", false},
		{"CET-1CEST,M3.5.0,M10.5.0/3", "13", "14", false},
		{"Eastern", "07", "08", false},
		{":Eastern", "07", "08", false},
		{file, "07", "08", false},
		{":" + file, "07", "08", false},
		{":" + american, "", "", true},
		{"Nowhere/City", "", "", true},
		{"../Eastern", "", "", true},
		{dir + "/missing", "", "", true},
		{dir, "", "", true},
		{garbage, "", "", true},
		{empty, "", "", true},
		{long, "", "", true},
		{fifo, "", "", true},
		{"EST", "", "", true},
		{"E5", "", "", true},
		{american + "\n", "", "", true},
		{"EST5EDT,M13.2.0,M11.1.0", "", "", true},
	} {
		data, err := find(tt.tz, dir)
		if (err != nil) != tt.wantRejected {
			t.Errorf("%q: %v", tt.tz, err)
		}
		if err != nil {
			continue
		}
		loc, err := Load(data)
		if err != nil {
			t.Fatalf("%q: %v", tt.tz, err)
		}
		january := time.Date(2027, 1, 15, 12, 0, 0, 0, time.UTC).In(loc).Format("15")
		july := time.Date(2027, 7, 15, 12, 0, 0, 0, time.UTC).In(loc).Format("15")
		if january != tt.wantJanuary || july != tt.wantJuly {
			t.Errorf("%q: %s and %s o'clock, want %s and %s", tt.tz, january, july, tt.wantJanuary, tt.wantJuly)
		}
	}
}

// TestEnvironment checks that the variable TZ determines the local time zone.
func TestEnvironment(t *testing.T) {
	defer func(old *time.Location) { time.Local = old }(time.Local)
	t.Setenv("TZ", american)
	if err := SetLocal(); err != nil {
		t.Fatal(err)
	}
	if got := time.Unix(1800032400, 0).Format(time.RFC3339); got != "2027-01-15T12:00:00-05:00" {
		t.Error(got)
	}
	t.Setenv("TZ", "nonsense")
	if err := SetLocal(); err == nil {
		t.Error("an unknown time zone was accepted")
	}
	os.Unsetenv("TZ")
	if _, err := Environment(); err != nil {
		t.Error(err)
	}
}

// TestDate checks times around changes of the clock. The wanted times of
// skipped times are those that glibc's mktime returns with tm_isdst=-1.
func TestDate(t *testing.T) {
	posix := func(s string) *time.Location {
		loc, err := Load(rule(s))
		if err != nil {
			t.Fatal(err)
		}
		return loc
	}
	for _, tt := range []struct {
		name string
		loc  *time.Location
		wall string
		want string
	}{
		{"winter", posix(american), "2027-01-15T12:00:00", "2027-01-15T12:00:00-05:00"},
		{"before a skipped hour", posix(american), "2026-03-08T01:59:59", "2026-03-08T01:59:59-05:00"},
		{"skipped", posix(american), "2026-03-08T02:00:00", "2026-03-08T03:00:00-04:00"},
		{"skipped", posix(american), "2026-03-08T02:30:00", "2026-03-08T03:30:00-04:00"},
		{"after a skipped hour", posix(american), "2026-03-08T03:00:00", "2026-03-08T03:00:00-04:00"},
		{"repeated", posix(american), "2026-11-01T01:00:00", "2026-11-01T01:00:00-04:00"},
		{"repeated", posix(american), "2026-11-01T01:30:00", "2026-11-01T01:30:00-04:00"},
		{"after a repeated hour", posix(american), "2026-11-01T02:00:00", "2026-11-01T02:00:00-05:00"},
		{"skipped, from a file", load(t, "America/New_York"), "2026-03-08T02:30:00", "2026-03-08T03:30:00-04:00"},
		{"repeated, from a file", load(t, "America/New_York"), "2026-11-01T01:30:00", "2026-11-01T01:30:00-04:00"},
		{"skipped, after the file's last change", load(t, "America/New_York"), "2050-03-13T02:30:00", "2050-03-13T03:30:00-04:00"},
		{"skipped, east", load(t, "Europe/Berlin"), "2026-03-29T02:30:00", "2026-03-29T03:30:00+02:00"},
		{"repeated, east", load(t, "Europe/Berlin"), "2026-10-25T02:30:00", "2026-10-25T02:30:00+02:00"},
		{"skipped, half an hour", load(t, "Australia/Lord_Howe"), "2026-10-04T02:15:00", "2026-10-04T02:45:00+11:00"},
		{"repeated, half an hour", load(t, "Australia/Lord_Howe"), "2026-04-05T01:45:00", "2026-04-05T01:45:00+11:00"},
		{"skipped midnight", load(t, "America/Santiago"), "2026-09-06T00:00:00", "2026-09-06T01:00:00-03:00"},
		{"skipped day", load(t, "Pacific/Apia"), "2011-12-30T12:00:00", "2011-12-31T12:00:00+14:00"},
		{"before the first change", load(t, "America/New_York"), "1800-01-01T00:00:00", "1800-01-01T00:00:00-04:56"},
		{"no changes", time.UTC, "2026-03-08T02:30:00", "2026-03-08T02:30:00Z"},
	} {
		wall, err := time.Parse("2006-01-02T15:04:05", tt.wall)
		if err != nil {
			t.Fatal(err)
		}
		got := Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), tt.loc)
		if text := got.Format(time.RFC3339); text != tt.want {
			t.Errorf("%s: %s: %s, want %s", tt.name, tt.wall, text, tt.want)
		}
	}
}

// FuzzDate checks that Date ends for every rule and returns a time near the
// given one.
func FuzzDate(f *testing.F) {
	f.Add(american, int64(1772937000))
	f.Add("A1B2,0/0,0/0", int64(1772937000))
	f.Add("<+0030>-0:30<+0130>-1:30,J1/-167,J365/167", int64(1767225600))
	f.Add("AAA0BBB-167:59:59,M1.1.0/-167,M12.5.6/167", int64(1767225600))
	f.Fuzz(func(t *testing.T, posix string, seconds int64) {
		loc, err := Load(rule(posix))
		if err != nil || seconds < 0 || seconds > 1<<36 {
			return
		}
		wall := time.Unix(seconds, 0).UTC()
		got := Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), loc)
		if diff := got.Sub(wall).Abs(); diff > maxOffset {
			t.Errorf("%q: %v for %v", posix, got, wall)
		}
	})
}
