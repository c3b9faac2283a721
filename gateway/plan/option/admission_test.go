package option

import (
	"fmt"
	"testing"
)

// TestNetworks checks that an IPv4 network and the same network in IPv6
// notation have the same effect.
func TestNetworks(t *testing.T) {
	var o Options
	if err := o.setExempt("SCHEDRESTD_EXEMPT", "::ffff:10.0.0.0/104,192.0.2.7"); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(o.Setup.Admission.Exempt); got != "[10.0.0.0/8 192.0.2.7/32]" {
		t.Error(got)
	}
}
