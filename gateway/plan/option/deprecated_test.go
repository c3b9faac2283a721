package option

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
	"schedrestd/ipc/work"
)

func TestDeprecated(t *testing.T) {
	const december, june = 1796083200, 1811808000 // 2026-12-01, 2027-06-01
	tests := []struct {
		value string
		want  []work.Deprecation
		error string
	}{
		{value: "v0.0.40:2026-12-01", want: []work.Deprecation{{Version: 40, Since: december}}},
		{value: "v0.0.40:2026-12-01:2027-06-01, v0.0.41:2027-06-01", want: []work.Deprecation{
			{Version: 40, Since: december, Sunset: june}, {Version: 41, Since: june}}},
		{value: "v0.0.40:2026-12-01:2026-12-01", want: []work.Deprecation{{Version: 40, Since: december, Sunset: december}}},
		{value: ",", error: "no version is named"},
		{value: "v0.0.40", error: `"v0.0.40" has no day`},
		{value: "v0.0.40:", error: `"" is not a day`},
		{value: "v0.0.40:2026-12-01:", error: `"" is not a day`},
		{value: "v0.0.40:2026-12-01:2027-06-01:x", error: "has no day"},
		{value: "v0.0.39:2026-12-01", error: `unknown version "v0.0.39"`},
		{value: "40:2026-12-01", error: `unknown version "40"`},
		{value: "v0.0.40:2026-12-01,v0.0.40:2026-12-02", error: "v0.0.40 is given twice"},
		{value: "v0.0.40:2026-13-01", error: `"2026-13-01" is not a day`},
		{value: "v0.0.40:1969-12-31", error: `"1969-12-31" is not a day`},
		{value: "v0.0.40:2027-06-01:2026-12-01", error: "v0.0.40 would end before it is deprecated"},
	}
	for _, tt := range tests {
		var o Options
		err := o.setDeprecated("SCHEDRESTD_DEPRECATED", tt.value)
		if tt.error != "" {
			if err == nil || !strings.Contains(err.Error(), tt.error) || errs.HintOf(err) == "" {
				t.Errorf("%s: %v", tt.value, err)
			}
			continue
		}
		if d := cmp.Diff(tt.want, o.Setup.Deprecated); d != "" || err != nil {
			t.Errorf("%s: %v\n%s", tt.value, err, d)
		}
	}
}
