package auth

import (
	"net/http"
	"strings"
	"testing"

	"schedrestd/internal/setting"
)

// firstRefusal returns the text of the first step that refuses, or "".
func firstRefusal(steps []Step) string {
	for _, s := range steps {
		if s.Outcome == Refuses {
			return s.Text
		}
	}
	return ""
}

// requestWith returns a request with a token.
func requestWith(token string) *http.Request {
	r, _ := http.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("X-Slurm-User-Token", token)
	return r
}

// TestExplainAgrees checks that Explain refuses the tokens that the gateway
// refuses, for the same reason, and no others.
func TestExplainAgrees(t *testing.T) {
	opt := Options{JWT: true, Now: clock}
	source := KeyFile("jwt_key=/k", testKey(t))
	tokens := []string{sign(goodHeader, goodClaims), sign(goodHeader, claim(identityOf("alice", 3))),
		sign(goodHeader, `{"iat":1699990000,"exp":1699999999,"sun":"alice"}`)} // expired, but within the leeway of the daemons
	for _, a := range attacks {
		tokens = append(tokens, a.token)
	}
	for _, token := range tokens {
		_, err := FromRequest(requestWith(token), opt)
		steps, _ := Explain(token, opt, source, KeySource{})
		got, want := firstRefusal(steps), ""
		if err != nil && token != "" {
			want = strings.TrimPrefix(reasonOf(err), "token: ")
		}
		if token != "" && (want == "") != (got == "") || !strings.HasPrefix(got, want) {
			t.Errorf("%.60q: the gateway's reason is %q, the explanation's %q", token, want, got)
		}
	}
}

// reasonOf returns the reason that the log contains.
func reasonOf(err error) string { return err.(interface{ Unwrap() error }).Unwrap().Error() }

// TestExplain checks the steps about some tokens.
func TestExplain(t *testing.T) {
	good := sign(goodHeader, goodClaims)
	other, _ := NewKey([]byte(strings.Repeat("k", 32)))
	keySet := provider(t, "a").Keys()
	const dates = "issued at 2023-11-14T22:13:20Z, expires at 2023-11-14T22:43:20Z, this machine's clock is at 2023-11-14T22:13:20Z"
	tests := []struct {
		name, token  string
		rules        Rules
		hs256, rs256 KeySource
		want         string // the name, outcome and text of the steps from the second on
	}{
		{"good", good, Rules{}, KeyFile("jwt_key=/k", testKey(t)), KeySource{},
			"form 0 a header, a payload and a signature in base64url|header 0 alg HS256, no kid|payload 0 claims exp, iat, sun|dates 0 " + dates +
				"|user 0 alice, from the claim sun|signature 0 verified with jwt_key=/k"},
		{"another key", good, Rules{}, KeyFile("jwt_key=/k", other), KeySource{}, "user 0 alice, from the claim sun|signature 1 wrong signature: jwt_key=/k"},
		{"no key", good, Rules{}, KeySource{Missing: "jwt_key=/k can't be read"}, KeySource{}, "signature 2 jwt_key=/k can't be read"},
		{"no source", good, Rules{}, KeySource{}, KeySource{}, "signature 2 there is no key for HS256 here"},
		{"RS256", signRSA(t, providerKey(), `{"alg":"RS256","kid":"a"}`, goodClaims), Rules{}, KeySource{}, KeySetFile("jwks=/j", keySet),
			`header 0 alg RS256, kid a|`},
		{"a provider's, without rules", signRSA(t, providerKey(), `{"alg":"RS256","kid":"a"}`, goodClaims), Rules{}, KeySource{}, KeySetFile("jwks=/j", keySet),
			`|provider 0 any iss and aud, permits everything|`},
		{"a provider's, with rules", signRSA(t, providerKey(), `{"alg":"RS256","kid":"a"}`, claim(`"sun":"alice","iss":"https://id","aud":"x","scope":"openid compute.read"`)),
			Rules{Tokens: setting.Tokens{Issuer: "https://id", Audience: "x", ScopeClaim: "scope"}}, KeySource{}, KeySetFile("jwks=/j", keySet),
			`|provider 0 iss https://id, aud x, permits compute.read|`},
		{"a provider's, of another realm", signRSA(t, providerKey(), `{"alg":"RS256","kid":"a"}`, claim(`"sun":"alice","iss":"https://id/2"`)),
			Rules{Tokens: setting.Tokens{Issuer: "https://id"}}, KeySource{}, KeySetFile("jwks=/j", keySet),
			`|provider 1 the claim iss is not that of SCHEDRESTD_TOKEN_ISSUER|`},
		{"RS256 with an unknown kid", signRSA(t, providerKey(), `{"alg":"RS256","kid":"b"}`, goodClaims), Rules{}, KeySource{}, KeySetFile("jwks=/j", keySet),
			`signature 1 no key matches its kid: jwks=/j, kid "a"`},
		{"expired, and with another key", sign(goodHeader, `{"iat":1699990000,"exp":1699993600,"sun":"alice"}`), Rules{}, KeyFile("jwt_key=/k", other), KeySource{},
			"dates 1 expired 1h46m40s ago; issued at 2023-11-14T19:26:40Z, expires at 2023-11-14T20:26:40Z, this machine's clock is at 2023-11-14T22:13:20Z" +
				"|user 0 alice, from the claim sun|signature 1 wrong signature: jwt_key=/k"},
		{"no user", sign(goodHeader, claim(`"mail":"alice"`)), Rules{}, KeyFile("jwt_key=/k", testKey(t)), KeySource{}, "user 1 no claim names the user|signature 0"},
		{"the site's claim", sign(goodHeader, claim(`"mail":"alice"`)), Rules{UserField: "mail"}, KeySource{}, KeySource{}, "user 0 alice, from the claim mail"},
		{"an identity", sign(goodHeader, claim(identityOf("alice", 1))), Rules{ClientIDs: true}, KeySource{}, KeySource{}, "user 0 alice with uid 1001, from the claims uid, gid and id"},
		{"no token", "good day", Rules{}, KeySource{}, KeySource{}, "form 1 not three segments"},
		{"an algorithm", sign(`{"alg":"none"}`, goodClaims), Rules{}, KeySource{}, KeySource{}, "header 1 header: alg is not HS256 or RS256"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			steps, _ := Explain(tt.token, Options{Rules: tt.rules, Now: clock}, tt.hs256, tt.rs256)
			var lines []string
			for _, s := range steps {
				lines = append(lines, s.Name+" "+string('0'+rune(s.Outcome))+" "+s.Text)
			}
			if got := strings.Join(lines, "|"); !strings.Contains(got, tt.want) {
				t.Errorf("got %s", got)
			}
			signature := tt.token[strings.LastIndexByte(tt.token, '.')+1:]
			if len(signature) > 20 && strings.Contains(strings.Join(lines, ""), signature) {
				t.Error("shows the signature")
			}
		})
	}
}
