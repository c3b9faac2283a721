package attack

import (
	"strings"
	"testing"

	"schedrestd/integration/harness"
)

// delivery is one way to send a token, and its outcome. In headers and path,
// $HS and $RS stand for valid tokens, $bad stands for a token with a wrong
// signature, and $user stands for the user of these tokens.
type delivery struct {
	name    string
	headers []string
	status  int
	path    string // appended to the path of the request
}

// deliveries are valid and invalid ways to send a token.
var deliveries = []delivery{
	{name: "made elsewhere with the key", headers: []string{"X-SCHED-USER-TOKEN: $HS"}, status: 200},
	{name: "made by the provider", headers: []string{"X-SCHED-USER-TOKEN: $RS"}, status: 200},
	{name: "with the name of its user", headers: []string{"X-SCHED-USER-TOKEN: $HS", "X-SCHED-USER-NAME: $user"}, status: 200},
	{name: "as Bearer", headers: []string{"Authorization: Bearer $RS"}, status: 200},
	{name: "as bearer", headers: []string{"authorization: bearer $HS"}, status: 200},
	{name: "in the other spelling", headers: []string{"X-SLURM-USER-TOKEN: $HS"}, status: 200},
	{name: "in small letters", headers: []string{"x-slurm-user-token: $RS", "x-sched-user-name: $user"}, status: 200},
	{name: "beside a password for the proxy", headers: []string{"X-SCHED-USER-TOKEN: $HS", "Authorization: Basic cm9vdDpyb290"}, status: 200},
	{name: "beside headers that mean nothing", headers: []string{"X-SCHED-USER-TOKEN: $HS", "Cookie: token=$bad", "X-Auth-Token: $bad", "Proxy-Authorization: Bearer $bad"}, status: 200},

	{name: "none", status: 401},
	{name: "a name alone", headers: []string{"X-SCHED-USER-NAME: $user"}, status: 401},
	{name: "empty", headers: []string{"X-SCHED-USER-TOKEN:"}, status: 401},
	{name: "blanks", headers: []string{"X-SCHED-USER-TOKEN:  \t "}, status: 401},
	{name: "a name header with the token", headers: []string{"X-SCHED-USER-NAME: $HS"}, status: 401},
	{name: "the token as its user's name", headers: []string{"X-SCHED-USER-TOKEN: $HS", "X-SCHED-USER-NAME: $HS"}, status: 401},
	{name: "an empty Bearer", headers: []string{"Authorization: Bearer"}, status: 401},
	{name: "Bearer in the token's header", headers: []string{"X-SCHED-USER-TOKEN: Bearer $HS"}, status: 401},
	{name: "Bearer twice in one", headers: []string{"Authorization: Bearer Bearer $HS"}, status: 401},
	{name: "Bearer with a comma", headers: []string{"Authorization: Bearer $HS, $HS"}, status: 401},
	{name: "Bearer with a colon", headers: []string{"Authorization: Bearer: $HS"}, status: 401},
	{name: "Bearer with a word behind", headers: []string{"Authorization: Bearer $HS x"}, status: 401},
	{name: "Bearer with a parameter", headers: []string{`Authorization: Bearer token="$HS"`}, status: 401},
	{name: "Authorization without a scheme", headers: []string{"Authorization: $HS"}, status: 401},
	{name: "a wrong kind of Authorization", headers: []string{"Authorization: Basic $HS"}, status: 401},
	{name: "Authorization: Token", headers: []string{"Authorization: Token $HS"}, status: 401},
	{name: "Authorization: JWT", headers: []string{"Authorization: JWT $HS"}, status: 401},
	{name: "Authorization: DPoP", headers: []string{"Authorization: DPoP $HS"}, status: 401},

	{name: "twice, the same", headers: []string{"X-SCHED-USER-TOKEN: $HS", "X-SCHED-USER-TOKEN: $HS"}, status: 401},
	{name: "twice, the last forged", headers: []string{"X-SCHED-USER-TOKEN: $HS", "X-SCHED-USER-TOKEN: $bad"}, status: 401},
	{name: "twice, the first forged", headers: []string{"X-SCHED-USER-TOKEN: $bad", "X-SCHED-USER-TOKEN: $HS"}, status: 401},
	{name: "two good ones", headers: []string{"X-SCHED-USER-TOKEN: $HS", "X-SCHED-USER-TOKEN: $RS"}, status: 401},
	{name: "twice, one empty", headers: []string{"X-SCHED-USER-TOKEN: $HS", "X-SCHED-USER-TOKEN:"}, status: 401},
	{name: "in both spellings", headers: []string{"X-SCHED-USER-TOKEN: $HS", "X-SLURM-USER-TOKEN: $HS"}, status: 401},
	{name: "in both spellings, one forged", headers: []string{"X-SLURM-USER-TOKEN: $bad", "X-SCHED-USER-TOKEN: $HS"}, status: 401},
	{name: "in both spellings, one empty", headers: []string{"X-SLURM-USER-TOKEN:", "X-SCHED-USER-TOKEN: $HS"}, status: 401},
	{name: "in two headers", headers: []string{"X-SCHED-USER-TOKEN: $HS", "Authorization: Bearer $HS"}, status: 401},
	{name: "in two headers, Bearer forged", headers: []string{"X-SCHED-USER-TOKEN: $HS", "Authorization: Bearer $bad"}, status: 401},
	{name: "in two headers, Bearer good", headers: []string{"X-SCHED-USER-TOKEN: $bad", "Authorization: Bearer $HS"}, status: 401},
	{name: "in two headers, Bearer empty", headers: []string{"X-SCHED-USER-TOKEN: $HS", "Authorization: Bearer "}, status: 401},
	{name: "an empty header, and Bearer", headers: []string{"X-SCHED-USER-TOKEN:", "Authorization: Bearer $HS"}, status: 401},
	{name: "Bearer in two headers", headers: []string{"Authorization: Bearer $HS", "Authorization: Bearer $HS"}, status: 401},
	{name: "Bearer and Basic", headers: []string{"Authorization: Basic cm9vdDpyb290", "Authorization: Bearer $HS"}, status: 401},
	{name: "with underscores beside", headers: []string{"X-SCHED-USER-TOKEN: $HS", "X_SCHED_USER_TOKEN: $bad"}, status: 401},
	{name: "a name named in Connection", headers: []string{"X-SCHED-USER-TOKEN: $HS", "X-SCHED-USER-NAME: $user", "Connection: X-SCHED-USER-NAME"}, status: 401},
	{name: "an empty name", headers: []string{"X-SCHED-USER-TOKEN: $HS", "X-SCHED-USER-NAME:"}, status: 401},

	{name: "in X-Auth-Token", headers: []string{"X-Auth-Token: $HS"}, status: 401},
	{name: "in X-SCHED-TOKEN", headers: []string{"X-SCHED-TOKEN: $HS"}, status: 401},
	{name: "in SCHED_JWT", headers: []string{"SCHED_JWT: $HS", "SCHED-JWT: $HS"}, status: 401},
	{name: "in Proxy-Authorization", headers: []string{"Proxy-Authorization: Bearer $HS"}, status: 401},
	{name: "in X-Forwarded-Authorization", headers: []string{"X-Forwarded-Authorization: Bearer $HS", "X-Original-Authorization: Bearer $HS"}, status: 401},
	{name: "in a cookie", headers: []string{"Cookie: X-SCHED-USER-TOKEN=$HS; token=$HS; jwt=$HS"}, status: 401},
	{name: "in Sec-WebSocket-Protocol", headers: []string{"Sec-WebSocket-Protocol: bearer, $HS"}, status: 401},
	{name: "in a header that is like the right one", headers: []string{"X-SCHED-USER-TOKEN-: $HS", "XX-SCHED-USER-TOKEN: $HS", "X-SCHED-USER-TOKENS: $HS", "X.SCHED.USER.TOKEN: $HS"}, status: 401},

	{name: "in the query", path: "?token=$HS", status: 401},
	{name: "in the query, by the header's name", path: "?X-SCHED-USER-TOKEN=$HS", status: 401},
	{name: "in the query, as OAuth has it", path: "?access_token=$RS", status: 401},
	{name: "in the query, escaped", path: "?x%2Dsched%2Duser%2Dtoken=$HS", status: 401},
	{name: "in the query by any name", path: "?q=$HS", status: 401},
	{name: "in the query, with a good header", path: "?token=$HS", headers: []string{"X-SCHED-USER-TOKEN: $HS"}, status: 401},
	{name: "in the query, forged, with a good header", path: "?access_token=$bad", headers: []string{"X-SCHED-USER-TOKEN: $HS"}, status: 401},
}

// TestTokens checks that a token is accepted only in its proper place, and only
// if it is sent once, whatever keys the gateway has.
func TestTokens(t *testing.T) {
	t.Parallel()
	s := newAttackLab(t, "jwt_key jwks")
	good := s.validToken("HS256")
	end := strings.LastIndexByte(good, '.') + 1
	fill := strings.NewReplacer("$HS", good, "$RS", s.validToken("RS256"), "$bad", good[:end]+flipBit(good[end:], 7), "$user", s.Owner)
	for _, c := range deliveries {
		t.Run(c.name, func(t *testing.T) {
			for _, g := range s.gateways {
				for _, r := range append(s.requests(c.status), request{"GET", "/sched/v0.0.40/node/" + s.Node, ""}) {
					group := r.path // refusals of requests that differ only in c.path must be identical
					r.path += fill.Replace(c.path)
					g.expectInGroup(t, group, r, fill.Replace(strings.Join(append(c.headers, "X-Other: x"), "\r\n")), c.status)
				}
			}
		})
	}
	// The gateways' answers must not depend on the gateways' keys, either.
	for _, g := range s.gateways[1:] {
		for path, refusal := range g.refusals {
			if refusal != s.gateways[0].refusals[path] {
				t.Errorf("%s refuses %s as\n%s\n%s as\n%s", g.name, path, refusal, s.gateways[0].name, s.gateways[0].refusals[path])
			}
		}
	}
}

// TestActAs checks that root's token may act as another user, and that a user's
// token may act only as that user.
func TestActAs(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	l := harness.NewLab(t)
	u := harness.OrdinaryUser(t)
	nameHeader := "X-SCHED-USER-NAME: " + u.Name
	id := l.Submit("id -un", nil, nameHeader)
	l.AwaitEnd(id)
	if got := l.Output(t, id); got != u.Name+"\n" {
		t.Errorf("the job ran as %q, want %s", got, u.Name)
	}
	tokenHeader := "X-SCHED-USER-TOKEN: " + l.UserToken(u.Name)
	l.Request("GET", "/sched/v0.0.43/ping", "", tokenHeader).Want(t, 200)
	l.Request("GET", "/sched/v0.0.43/ping", "", tokenHeader, nameHeader).Want(t, 200)
	l.Request("GET", "/sched/v0.0.43/ping", "", tokenHeader, "X-SCHED-USER-NAME: root").Want(t, 401)
	a := l.Request("POST", "/sched/v0.0.43/job/submit", l.JobRequest("true", nil), tokenHeader, "X-SCHED-USER-NAME: root")
	if a.Status != 401 {
		t.Errorf("a user submitted as root: %s", a.Text)
	}
}
