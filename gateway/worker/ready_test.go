package worker

import (
	"context"
	"crypto/x509"
	"strings"
	"testing"
	"time"

	"schedrestd/ipc"
	"schedrestd/ipc/query"
)

// TestReadiness checks each cause that makes a worker unready, and the reason
// that is reported for it.
func TestReadiness(t *testing.T) {
	defer func() { draining.Store(false); certUnusable.Store(false); servedCert.Store(nil) }()
	up, tokens := true, NewTokens()
	check := func(want ...string) {
		t.Helper()
		got := readiness(tokens, func(context.Context) bool { return up })(context.Background())
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
	servedCert.Store(&x509.Certificate{NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour)})
	check()
	servedCert.Store(&x509.Certificate{NotBefore: now.Add(-2 * time.Hour), NotAfter: now.Add(-time.Hour)})
	check("keys: the certificate expired at ")
	servedCert.Store(&x509.Certificate{NotBefore: now.Add(time.Hour), NotAfter: now.Add(2 * time.Hour)})
	check("keys: the certificate is not valid before ")
	certUnusable.Store(true)
	draining.Store(true)
	up = false
	check("draining: ", "keys: the certificate can't be used", "keys: ", "controller: unreachable for ")
	if got := readiness(tokens, nil)(context.Background()); len(got) != 3 {
		t.Errorf("without a controller: %q", got)
	}
}

// TestReadinessOfTokens checks that a worker is unready after its keeper has
// exited, or if a file with keys for tokens can no longer be used.
func TestReadinessOfTokens(t *testing.T) {
	reasons := func(tokens *Tokens) string {
		return strings.Join(readiness(tokens, nil)(context.Background()), "\n")
	}
	for verdict, want := range map[query.Verdict]string{
		query.NoVerdict: "", query.Forged: "", query.Outdated: "keys: the file of jwt_key can't be used any more; see the log",
	} {
		keeper, fd, err := ipc.Pair(ipc.Keeper, ipc.Worker)
		must(t, err)
		tokens := NewTokens()
		must(t, tokens.connect(fd))
		m, err := keeper.Receive()
		must(t, err)
		must(t, keeper.Send(&query.Verified{ID: m.Message.(*query.Verify).ID, Verdict: verdict}))
		for end := time.Now().Add(10 * time.Second); reasons(tokens) != want && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		if got := reasons(tokens); got != want {
			t.Errorf("verdict %d: %q, want %q", verdict, got, want)
		}
		keeper.Close()
		for end := time.Now().Add(30 * time.Second); !tokens.keeper.IsLost() && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		if got := reasons(tokens); !strings.HasPrefix(got, "keys: the keeper exited") {
			t.Errorf("the keeper exited: %q", got)
		}
	}
	tokens := tokensWithKeys(t, setOf(oneRSA()), false)
	if got := reasons(tokens); !strings.HasPrefix(got, "keys: the file of jwks") {
		t.Errorf("an outdated key set: %q", got)
	}
	if tokens.singleClient = true; reasons(tokens) != "" {
		t.Error("unready for its only client")
	}
	if got := reasons(tokensWithKeys(t, setOf(oneRSA()), true)); got != "" {
		t.Errorf("a key set: %q", got)
	}
}
