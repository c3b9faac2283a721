package jobs

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"schedrestd/integration/harness"
)

// TestTimeZone checks that a gateway uses the time zone in TZ for times without
// a time zone. Its workers have an empty environment, and usually an empty root
// directory.
func TestTimeZone(t *testing.T) {
	t.Parallel()
	const noon, skipped = "2027-01-15T12:00:00", "2027-03-14T02:30:00"
	dir := t.TempDir()
	file := filepath.Join(dir, "zone")
	// If root runs the test, schedrestd-config has another uid.
	harness.Must(t, os.Chmod(filepath.Dir(dir), 0o755))
	if data, err := os.ReadFile("/usr/share/zoneinfo/America/New_York"); err == nil {
		harness.Must(t, os.WriteFile(file, data, 0o644))
	}
	for _, tt := range []struct {
		tz, begin string
		want      int64
	}{
		{"America/New_York", noon, 1800032400},
		{":" + file, noon, 1800032400},
		{"EST5EDT,M3.2.0,M11.1.0", noon, 1800032400},
		{"EST5EDT,M3.2.0,M11.1.0", skipped, time.Date(2027, 3, 14, 7, 30, 0, 0, time.UTC).Unix()},
		{"America/New_York", skipped, time.Date(2027, 3, 14, 7, 30, 0, 0, time.UTC).Unix()},
		{"", noon, 1800014400},
	} {
		t.Run(tt.tz+" "+tt.begin, func(t *testing.T) {
			t.Parallel()
			if _, err := os.Stat(file); err != nil && tt.want == 1800032400 {
				t.Skip("needs a database of time zones")
			}
			l := harness.NewLab(t, harness.WithOptions(nil, "TZ="+tt.tz))
			id := l.Submit("true", map[string]any{"begin_time": tt.begin})
			if got := l.Job(id).Get("jobs", 0, "eligible_time", "number"); got != float64(tt.want) {
				t.Errorf("%v, want %d", got, tt.want)
			}
		})
	}
	l := harness.NewDaemons(t)
	l.FailsToStart(t, nil, []string{"TZ=Nowhere/City"}, append(l.Restd.Args[:len(l.Restd.Args)-1], "127.0.0.1:0")...)
}
