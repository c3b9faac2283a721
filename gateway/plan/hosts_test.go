package plan

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestFixedHosts checks that the machine's own name is among the names, behind
// the configured ones.
func TestFixedHosts(t *testing.T) {
	own, err := os.Hostname()
	if err != nil {
		t.Skip(err)
	}
	var o options
	o.Setup.Hosts = []string{"portal.example.org"}
	names := o.fixedHosts()
	if names[0] != "portal.example.org" || !slices.Contains(names, strings.ToLower(own)) {
		t.Errorf("%q", names)
	}
}
