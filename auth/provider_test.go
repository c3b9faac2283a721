package auth

import (
	"strings"
	"testing"

	"schedrestd/api/scope"
	"schedrestd/internal/setting"
)

// TestProviderRules checks the rules for tokens that the key set signs, and that
// tokens with the cluster's own key need not follow them.
func TestProviderRules(t *testing.T) {
	issuer, audience, scopes, oneUser := setting.Tokens{Issuer: "https://id/hpc"}, setting.Tokens{Audience: "sched"}, setting.Tokens{ScopeClaim: "scp"}, setting.Tokens{OneUser: true}
	const reads = scope.ComputeRead | scope.SlurmdbRead
	tests := []struct {
		name     string
		rules    setting.Tokens
		claims   string
		refused  string
		permits  scope.Set
		secret   bool // the cluster's own key signs it
		fromMail bool // userclaimfield=mail
	}{
		{name: "no rules", claims: `"sun":"alice","iss":7,"aud":{},"scp":false`, permits: scope.All},
		{name: "the issuer", rules: issuer, claims: `"sun":"alice","iss":"https://id/hpc"`, permits: scope.All},
		{name: "a longer issuer", rules: issuer, claims: `"sun":"alice","iss":"https://id/hpc/"`, refused: "the claim iss"},
		{name: "another case", rules: issuer, claims: `"sun":"alice","iss":"https://ID/hpc"`, refused: "the claim iss"},
		{name: "no issuer", rules: issuer, claims: `"sun":"alice"`, refused: "the claim iss"},
		{name: "a list of issuers", rules: issuer, claims: `"sun":"alice","iss":["https://id/hpc"]`, refused: "the claim iss"},
		{name: "the cluster's own token", rules: setting.Tokens{Issuer: "x", Audience: "x", ScopeClaim: "scp"}, claims: `"sun":"alice"`, permits: scope.All, secret: true},
		{name: "the audience", rules: audience, claims: `"sun":"alice","aud":"sched"`, permits: scope.All},
		{name: "one of the audiences", rules: audience, claims: `"sun":"alice","aud":["account","sched"]`, permits: scope.All},
		{name: "audiences in one text", rules: audience, claims: `"sun":"alice","aud":"account sched"`, refused: "the claim aud"},
		{name: "other audiences", rules: audience, claims: `"sun":"alice","aud":["account"]`, refused: "the claim aud"},
		{name: "a number among the audiences", rules: audience, claims: `"sun":"alice","aud":["sched",1]`, refused: "the claim aud"},
		{name: "null", rules: audience, claims: `"sun":"alice","aud":null`, refused: "the claim aud"},
		{name: "no audience", rules: audience, claims: `"sun":"alice"`, refused: "the claim aud"},
		{name: "a text of scopes", rules: scopes, claims: `"sun":"alice","scp":"openid compute.read slurmdb.read"`, permits: reads},
		{name: "a list of scopes", rules: scopes, claims: `"sun":"alice","scp":["compute.read","slurmdb.read email"]`, permits: reads},
		{name: "no scopes of ours", rules: scopes, claims: `"sun":"alice","scp":"openid Compute.Read compute.read:/x"`},
		{name: "scopes joined as in our settings", rules: scopes, claims: `"sun":"alice","scp":"compute.read+slurmdb.read"`, permits: reads},
		{name: "another claim", rules: scopes, claims: `"sun":"alice","scope":"compute.read"`},
		{name: "scopes that are a number", rules: scopes, claims: `"sun":"alice","scp":1`, refused: "the claim of SCHEDRESTD_TOKEN_SCOPE_CLAIM"},
		{name: "one user", rules: oneUser, claims: `"sun":"alice","username":"alice","mail":"alice"`, permits: scope.All, fromMail: true},
		{name: "another user in mail", rules: oneUser, claims: `"sun":"alice","mail":"bob"`, refused: "two claims name different users", fromMail: true},
		{name: "another user in a claim without meaning", rules: oneUser, claims: `"sun":"alice","mail":"bob"`, permits: scope.All},
		{name: "another user in username", rules: oneUser, claims: `"sun":"alice","username":"bob"`, refused: "two claims name different users", secret: true},
		{name: "a user that is a number", rules: oneUser, claims: `"sun":"alice","mail":5`, refused: "two claims name different users", fromMail: true},
		{name: "without the rule", claims: `"sun":"alice","username":"bob"`, permits: scope.All},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			token := signRSA(t, providerKey(), `{"alg":"RS256"}`, claim(tt.claims))
			if tt.secret {
				token = sign(goodHeader, claim(tt.claims))
			}
			rules := Rules{Tokens: tt.rules}
			if tt.fromMail {
				rules.UserField = "mail"
			}
			seen := new(Seen)
			for range 2 { // the second time, the token is known
				c, err := Inspect(token, Options{Rules: rules, Seen: seen, Now: clock})
				if tt.refused != "" {
					if err == nil || !strings.Contains(reasonOf(err), tt.refused) {
						t.Errorf("%v", err)
					}
					continue
				}
				if got := scope.All &^ c.Withheld; err != nil || got != tt.permits || c.User != "alice" {
					t.Errorf("permits %s, user %s: %v", got, c.User, err)
				}
			}
		})
	}
}
