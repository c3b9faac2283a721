package integration

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// forge makes a token as a tool outside of this project would, and as an attacker.
func forge(t *testing.T, key []byte, method jwt.SigningMethod, claims jwt.MapClaims) string {
	t.Helper()
	var signer any = key
	if method == jwt.SigningMethodNone {
		signer = jwt.UnsafeAllowNoneSignatureType
	}
	token, err := jwt.NewWithClaims(method, claims).SignedString(signer)
	must(t, err)
	return token
}

func TestTokens(t *testing.T) {
	l := newLab(t)
	key, err := os.ReadFile(l.Key())
	must(t, err)
	now := time.Now()
	claims := func(from, to time.Duration) jwt.MapClaims {
		return jwt.MapClaims{"iat": now.Add(from).Unix(), "exp": now.Add(to).Unix(), "sun": l.Owner}
	}
	good := forge(t, key, jwt.SigningMethodHS256, claims(0, time.Hour))
	head, rest, _ := strings.Cut(good, ".")
	payload, _, _ := strings.Cut(rest, ".")
	h := func(name, value string) string { return name + ": " + value }
	const user, token = "X-SCHED-USER-NAME", "X-SCHED-USER-TOKEN"

	tests := []struct {
		name    string
		headers []string
		status  int
	}{
		{"made elsewhere with the key", []string{h(token, good)}, 200},
		{"with the name of its user", []string{h(token, good), h(user, l.Owner)}, 200},
		{"as Bearer", []string{h("Authorization", "Bearer "+good)}, 200},
		{"in the other spelling", []string{token + ":", h("X-SLURM-USER-TOKEN", good)}, 200},
		{"none", []string{token + ":"}, 401},
		{"a name alone", []string{token + ":", h(user, l.Owner)}, 401},
		{"empty", []string{h(token, "")}, 401},
		{"no token at all", []string{h(token, "good day")}, 401},
		{"two parts", []string{h(token, head+"."+payload)}, 401},
		{"empty signature", []string{h(token, head+"."+payload+".")}, 401},
		{"expired", []string{h(token, forge(t, key, jwt.SigningMethodHS256, claims(-2*time.Hour, -time.Hour)))}, 401},
		{"not valid yet", []string{h(token, forge(t, key, jwt.SigningMethodHS256, claims(time.Hour, 2*time.Hour)))}, 401},
		{"signed with another key", []string{h(token, forge(t, []byte("12345678901234567890123456789012"), jwt.SigningMethodHS256, claims(0, time.Hour)))}, 401},
		{"HS512", []string{h(token, forge(t, key, jwt.SigningMethodHS512, claims(0, time.Hour)))}, 401},
		{"unsigned", []string{h(token, forge(t, key, jwt.SigningMethodNone, claims(0, time.Hour)))}, 401},
		{"without an end", []string{h(token, forge(t, key, jwt.SigningMethodHS256, jwt.MapClaims{"iat": now.Unix(), "sun": l.Owner}))}, 401},
		{"without a user", []string{h(token, forge(t, key, jwt.SigningMethodHS256, jwt.MapClaims{"iat": now.Unix(), "exp": now.Unix() + 60}))}, 401},
		{"twice, the same", []string{h(token, good), h(token, good)}, 401},
		{"in two headers", []string{h(token, good), h("Authorization", "Bearer "+good)}, 401},
		{"a name named in Connection", []string{h(token, good), h(user, l.Owner), h("Connection", user)}, 401},
		{"an empty name", []string{h(token, good), h(user, "")}, 401},
		{"a wrong kind of Authorization", []string{h("Authorization", "Basic "+good)}, 401},
	}
	refusals := map[string]bool{}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, path := range []string{"/sched/v0.0.43/ping", "/sched/v0.0.40/node/" + l.Node, "/scheddb/v0.0.43/diag"} {
				a := l.ask("GET", path, "", test.headers...).want(t, test.status)
				if test.status == 401 {
					refusals[a.text[strings.Index(a.text, `"errors"`):]] = true
				}
			}
			a := l.ask("POST", "/sched/v0.0.43/job/submit", l.jobRequest("true", nil), test.headers...)
			if a.status != test.status {
				t.Errorf("submit: status %d, want %d", a.status, test.status)
			}
		})
	}
	// Whoever guesses must not learn from the answer which part was wrong.
	if len(refusals) != 1 {
		t.Errorf("%d different refusals:", len(refusals))
		for r := range refusals {
			t.Log(r)
		}
	}
}

// A token of root's may act as another; a user's only as himself.
func TestActAs(t *testing.T) {
	needRoot(t)
	l := newLab(t)
	u := someUser(t)
	as := "X-SCHED-USER-NAME: " + u.name
	id := l.submit("id -un", nil, as)
	l.end(id)
	if got := l.output(t, id); got != u.name+"\n" {
		t.Errorf("the job ran as %q, want %s", got, u.name)
	}
	own := "X-SCHED-USER-TOKEN: " + l.token(u.name)
	l.ask("GET", "/sched/v0.0.43/ping", "", own).want(t, 200)
	l.ask("GET", "/sched/v0.0.43/ping", "", own, as).want(t, 200)
	l.ask("GET", "/sched/v0.0.43/ping", "", own, "X-SCHED-USER-NAME: root").want(t, 401)
	a := l.ask("POST", "/sched/v0.0.43/job/submit", l.jobRequest("true", nil), own, "X-SCHED-USER-NAME: root")
	if a.status != 401 {
		t.Errorf("a user submitted as root: %s", a.text)
	}
}
