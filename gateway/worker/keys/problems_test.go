package keys

import (
	"crypto/x509"
	"strings"
	"testing"
	"time"

	"schedrestd/ipc"
	"schedrestd/ipc/query"
)

// TestProblemsOfCertificate checks that a certificate that clients reject, or
// that can't be used, is a problem.
func TestProblemsOfCertificate(t *testing.T) {
	k, now := New(), time.Now()
	valid := func(from, to time.Duration) {
		k.tls.Store(&serverTLS{leaf: &x509.Certificate{NotBefore: now.Add(from), NotAfter: now.Add(to)}})
	}
	check := func(want ...string) {
		t.Helper()
		got := k.Problems(now)
		if len(got) != len(want) {
			t.Fatalf("problems %q, want %q", got, want)
		}
		for i := range want {
			if !strings.HasPrefix(got[i], want[i]) {
				t.Errorf("problem %q, want %q", got[i], want[i])
			}
		}
	}
	check()
	valid(-time.Hour, time.Hour)
	check()
	valid(-2*time.Hour, -time.Hour)
	check("the certificate expired at ")
	valid(time.Hour, 2*time.Hour)
	check("the certificate is not valid before ")
	k.certUnusable.Store(true)
	check("the certificate can't be used", "the certificate is not valid before ")
}

// TestProblemsOfTokens checks that it is a problem if the keeper has exited, or
// if a file with keys for tokens can no longer be used.
func TestProblemsOfTokens(t *testing.T) {
	reasons := func(tokens *Keys) string {
		return strings.Join(tokens.Problems(time.Now()), "\n")
	}
	for verdict, want := range map[query.Verdict]string{
		query.NoVerdict: "", query.Forged: "", query.Outdated: "the file of jwt_key can't be used any more; see the log",
	} {
		keeper, fd, err := ipc.Pair(ipc.Keeper, ipc.Worker)
		must(t, err)
		tokens := New()
		must(t, tokens.Connect(fd))
		m, err := keeper.Receive()
		must(t, err)
		must(t, keeper.Send(&query.Verified{ID: m.Message.(*query.Verify).ID, Verdict: verdict}))
		for end := time.Now().Add(time.Minute); reasons(tokens) != want && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		if got := reasons(tokens); got != want {
			t.Errorf("verdict %d: %q, want %q", verdict, got, want)
		}
		keeper.Close()
		for end := time.Now().Add(time.Minute); !tokens.keeper.IsLost() && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		if got := reasons(tokens); !strings.HasPrefix(got, "the keeper exited") {
			t.Errorf("the keeper exited: %q", got)
		}
	}
	tokens := tokensWithKeys(t, setOf(oneRSA()), false)
	if got := reasons(tokens); !strings.HasPrefix(got, "the file of jwks") {
		t.Errorf("an outdated key set: %q", got)
	}
	if tokens.SingleClient = true; reasons(tokens) != "" {
		t.Error("unready for its only client")
	}
	if got := reasons(tokensWithKeys(t, setOf(oneRSA()), true)); got != "" {
		t.Errorf("a key set: %q", got)
	}
}
