package option

import (
	"strings"
	"testing"
)

// TestClusters checks which clusters the page at /status may link to.
func TestClusters(t *testing.T) {
	for value, want := range map[string]string{
		"a=https://a.example.org,b=http://127.0.0.1:6820/clusters/b": "",
		"A b <i>=https://x":                          "",
		",":                                          "not 1 to 32 clusters",
		strings.Repeat("a=http://a,", 33):            "not 1 to 32 clusters",
		"https://a.example.org":                      "is not a name and an address",
		"=https://a.example.org":                     "is not a name and an address",
		"a\u202eb=https://a.example.org":             "is not a name and an address",
		"a=" + "https://" + strings.Repeat("a", 250): "is not a name and an address",
		"a=javascript:alert(1)":                      "is not an origin",
		"a=https://user@a.example.org":               "has more than a host and a port",
		"a=https://A.example.org":                    "has no host",
		"a=https://a.example.org/b?c":                "has other characters",
		"a=https://a.example.org/%2e":                "has other characters",
	} {
		var o Options
		err := o.setClusters("SCHEDRESTD_CLUSTERS", value)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", value, err, want)
		}
	}
}
