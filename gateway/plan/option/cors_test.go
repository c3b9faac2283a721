package option

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
)

func TestOrigins(t *testing.T) {
	var many []string
	for i := range 33 {
		many = append(many, fmt.Sprintf("https://h%d", i))
	}
	tests := []struct {
		value string
		want  []string
		error string
	}{
		{value: "https://portal.example.org", want: []string{"https://portal.example.org"}},
		{value: "https://a, http://b:8080,", want: []string{"https://a", "http://b:8080"}},
		{value: "http://127.0.0.1:3000,http://[::1]:3000,https://[2001:db8::1]", want: []string{"http://127.0.0.1:3000", "http://[::1]:3000", "https://[2001:db8::1]"}},
		{value: "https://xn--bcher-kva.example", want: []string{"https://xn--bcher-kva.example"}},
		{value: "https://a:80,http://a:443", want: []string{"https://a:80", "http://a:443"}},
		{value: ",", error: "not 1 to 32 origins"},
		{value: strings.Join(many, ","), error: "not 1 to 32 origins"},
		{value: "*", error: "any web page could use it"},
		{value: "https://*.example.org", error: "has no host"},
		{value: "null", error: "any web page could use it"},
		{value: "https://a,https://a", error: "https://a is given twice"},
		{value: "https://a/", error: "has more than a host and a port"},
		{value: "https://a/path", error: "has more than a host and a port"},
		{value: "https://a?x", error: "has more than a host and a port"},
		{value: "https://user@a", error: "has more than a host and a port"},
		{value: "portal.example.org", error: "is not an origin with http"},
		{value: "file:///a", error: "is not an origin with http"},
		{value: "HTTPS://a", error: "is not an origin with http"},
		{value: "https:a", error: "is not an origin with http"},
		{value: "https://", error: "has no host"},
		{value: "https://A", error: "has no host"},
		{value: "https://bücher.example", error: "has no host"},
		{value: "https://a..b", error: "has no host"},
		{value: "https://a.", error: "has no host"},
		{value: "https://a b", error: "has no host"},
		{value: "https://127.1", error: "has no host"},
		{value: "https://1.2.3.256", error: "has no host"},
		{value: "https://[::1", error: "has no host"},
		{value: "https://[0::1]", error: "has no host"},
		{value: "https://[127.0.0.1]", error: "has no host"},
		{value: "https://[fe80::1%eth0]", error: "has no host"},
		{value: "https://a:443", error: "names the default port"},
		{value: "http://a:80", error: "names the default port"},
		{value: "https://a:", error: "has no valid port"},
		{value: "https://a:0", error: "has no valid port"},
		{value: "https://a:08", error: "has no valid port"},
		{value: "https://a:65536", error: "has no valid port"},
		{value: "https://a:https", error: "has no valid port"},
	}
	for _, tt := range tests {
		var o Options
		err := o.setOrigins("SCHEDRESTD_CORS_ORIGINS", tt.value)
		if tt.error != "" {
			if err == nil || !strings.Contains(err.Error(), tt.error) || errs.HintOf(err) == "" {
				t.Errorf("%s: %v", tt.value, err)
			}
			continue
		}
		if d := cmp.Diff(tt.want, o.Setup.Origins); d != "" || err != nil {
			t.Errorf("%s: %v\n%s", tt.value, err, d)
		}
	}
}
