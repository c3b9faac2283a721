package option

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
)

func TestHosts(t *testing.T) {
	var many []string
	for i := range 33 {
		many = append(many, fmt.Sprintf("h%d", i))
	}
	for _, tt := range []struct {
		value string
		want  []string
		error string
	}{
		{value: "portal.example.org", want: []string{"portal.example.org"}},
		{value: "Portal.Example.ORG, login1,", want: []string{"portal.example.org", "login1"}},
		{value: ",", error: "not 1 to 32 names"},
		{value: strings.Join(many, ","), error: "not 1 to 32 names"},
		{value: "*", error: `"*" is not a host name`},
		{value: "*.example.org", error: "is not a host name"},
		{value: "https://portal.example.org", error: "is not a host name"},
		{value: "portal.example.org:8080", error: "is not a host name"},
		{value: "portal.example.org.", error: "is not a host name"},
		{value: strings.Repeat("a.", 130) + "org", error: "is not a host name"},
	} {
		var o Options
		err := o.setHosts("SCHEDRESTD_HOSTS", tt.value)
		if tt.error != "" {
			if err == nil || !strings.Contains(err.Error(), tt.error) || errs.HintOf(err) == "" {
				t.Errorf("%q: error %v, want %q", tt.value, err, tt.error)
			}
			continue
		}
		if d := cmp.Diff(tt.want, o.Setup.Hosts); d != "" || err != nil {
			t.Errorf("%q: %v\n%s", tt.value, err, d)
		}
	}
}
