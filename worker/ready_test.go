package worker

import (
	"context"
	"crypto/x509"
	"strings"
	"testing"
	"time"
)

// TestReadiness: each cause makes the worker unready, and each is reported.
func TestReadiness(t *testing.T) {
	defer func() { leaving.Store(false); keyless.Store(false); shown.Store(nil) }()
	up := true
	check := func(want ...string) {
		t.Helper()
		got := readiness(func(context.Context) bool { return up })(context.Background())
		if len(got) != len(want) {
			t.Fatalf("reasons %q, want %q", got, want)
		}
		for i := range want {
			if !strings.HasPrefix(got[i], want[i]) {
				t.Errorf("reason %q, want %q", got[i], want[i])
			}
		}
	}
	now := time.Now()
	check()
	shown.Store(&x509.Certificate{NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour)})
	check()
	shown.Store(&x509.Certificate{NotBefore: now.Add(-2 * time.Hour), NotAfter: now.Add(-time.Hour)})
	check("keys: the certificate expired at ")
	shown.Store(&x509.Certificate{NotBefore: now.Add(time.Hour), NotAfter: now.Add(2 * time.Hour)})
	check("keys: the certificate is not valid before ")
	keyless.Store(true)
	leaving.Store(true)
	up = false
	check("draining: ", "keys: the certificate can't be used", "keys: ", "controller: unreachable for ")
	if got := readiness(nil)(context.Background()); len(got) != 3 {
		t.Errorf("without a controller: %q", got)
	}
}
