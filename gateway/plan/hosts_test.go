package plan

import (
	"fmt"
	"os"
	"slices"
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
		var o options
		err := setHosts(&o, tt.value)
		if tt.error != "" {
			if err == nil || !strings.Contains(err.Error(), tt.error) || errs.HintOf(err) == "" {
				t.Errorf("%q: error %v, want %q", tt.value, err, tt.error)
			}
			continue
		}
		if d := cmp.Diff(tt.want, o.hosts); d != "" || err != nil {
			t.Errorf("%q: %v\n%s", tt.value, err, d)
		}
	}
}

// TestFixedHosts checks that the machine's own name is among the names, behind
// the configured ones.
func TestFixedHosts(t *testing.T) {
	own, err := os.Hostname()
	if err != nil {
		t.Skip(err)
	}
	names := (&options{hosts: []string{"portal.example.org"}}).fixedHosts()
	if names[0] != "portal.example.org" || !slices.Contains(names, strings.ToLower(own)) {
		t.Errorf("%q", names)
	}
}
