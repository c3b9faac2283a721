package auth

import (
	"net/http"
	"strings"
	"testing"
)

// TestNoSecretOfReferer checks that the reason of a refusal, which is logged and
// sent, contains nothing of Referer but the origin.
func TestNoSecretOfReferer(t *testing.T) {
	for _, tt := range []struct{ referer, shows string }{
		{"https://evil.example.org/page?token=SECRET#SECRET", "Referer: https://evil.example.org"},
		{"https://SECRET:SECRET@evil.example.org:8443/", "Referer: https://evil.example.org:8443"},
		{"/page?token=SECRET", "Referer"},
		{"SECRET", "Referer"},
		{"about:SECRET", "Referer"},
		{"http:///SECRET", "Referer"},
		{"http://%zz/SECRET", "Referer"},
		{"", "Referer"},
	} {
		r := &http.Request{Method: http.MethodPost, Host: "gateway", Header: http.Header{"Referer": {tt.referer}}}
		err := CheckChange(r, false)
		if err == nil || strings.Contains(err.Error(), "SECRET") || !strings.HasSuffix(strings.SplitAfter(err.Error(), ")")[0], "("+tt.shows+")") {
			t.Errorf("Referer %q: got %v", tt.referer, err)
		}
	}
}
