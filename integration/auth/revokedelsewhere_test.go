package auth

import (
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"schedrestd/integration/harness"
)

// TestRevokedElsewhere checks that a wait and a stream at a second gateway with the same
// register end when the token is revoked with a request to the first one, and that
// pruning the register changes nothing for tokens that are valid or revoked.
func TestRevokedElsewhere(t *testing.T) {
	t.Parallel()
	l := newTokenLab(t)
	alice := l.tokens[l.alice]
	token, id := l.create(t, l.alice, `{"scopes": ["compute.read"]}`)
	kept, _ := l.create(t, l.bob, `{"scopes": ["compute.read"]}`)
	harness.Eventually(t, "the second gateway accepts the token", func() bool { return l.send(t, l.second, token, "GET", "jobs/", "").Status == 200 })
	const unchanging = "reservations/"
	tag := l.send(t, l.second, token, "GET", unchanging, "").Want(t, 200).Header.Get("ETag")
	waited := make(chan harness.Answer, 1)
	go func() {
		c := harness.NewClient(func() (net.Conn, error) { return net.Dial("tcp", l.second) })
		a, _ := l.TryRequest(c, "GET", "/sched/v0.0.43/"+unchanging+"?wait=10m", "", "X-SCHED-USER-TOKEN: "+token, "If-None-Match: "+tag)
		waited <- a
	}()
	stream := harness.Follow(t, "http://"+l.second+"/sched/v0.0.43/jobs/", "X-SCHED-USER-TOKEN: "+token)
	begun := time.Now()
	l.send(t, l.first, alice, "DELETE", "tokens/", "").Want(t, 200)
	stream.Await("end", "the gateway token is no longer accepted")
	if a := <-waited; a.Status != 401 {
		t.Errorf("the wait ended with %d %.300s", a.Status, a.Text)
	}
	t.Logf("both ended within %v", time.Since(begun))

	// A line about a token that has ended goes, and the gateways use the new file.
	text, err := os.ReadFile(l.register)
	harness.Must(t, err)
	ended := "token " + strings.Repeat("A", 26) + " user=" + l.bob + " scope=compute.read issued=2020-01-01T00:00:00Z until=2020-02-01T00:00:00Z\n"
	harness.ReplaceFile(t, l.register, append([]byte(ended), text...), 0o644)
	l.Schedctl(t, "token", "prune", "--register", l.register)
	if got, err := os.ReadFile(l.register); err != nil || string(got) != string(text) {
		t.Errorf("%v: the register is\n%s\nwant\n%s", err, got, text)
	}
	harness.Eventually(t, "a token is created in the new register", func() bool {
		return l.send(t, l.first, l.tokens[l.bob], "POST", "tokens/", `{"scopes": ["compute.read"], "label": "after"}`).Status == 200
	})
	if got, err := os.ReadFile(l.register); err != nil || !strings.Contains(string(got), "label=after") || !strings.Contains(string(got), id) {
		t.Errorf("%v: the register is\n%s", err, got)
	}
	for _, address := range []string{l.first, l.second} {
		if a, b := l.send(t, address, token, "GET", "jobs/", "").Status, l.send(t, address, kept, "GET", "jobs/", "").Status; a != 401 || b != 200 {
			t.Errorf("the revoked token gets %d, and the other one %d", a, b)
		}
	}
}
