package conf

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestAltParameters parses values of AuthAltParameters in both configuration
// files.
func TestAltParameters(t *testing.T) {
	withKeys := func(key, set string) Auth { return Auth{JWTKey: key, JWKS: set} }
	const year = 366 * 24 * time.Hour
	tests := []struct {
		name    string
		value   string // as in the file, with its quotes
		want    Auth
		warning string // text that follows the key's name in the only warning
		problem string // text of the only problem
	}{
		{name: "a key", value: "jwt_key=/k", want: withKeys("/k", "")},
		{name: "a key set", value: "jwks=/j", want: withKeys("", "/j")},
		{name: "both", value: "jwt_key=/k,jwks=/j", want: withKeys("/k", "/j")},
		{name: "both, in the other order", value: "jwks=/j,jwt_key=/k", want: withKeys("/k", "/j")},
		{name: "names in any case, values as they are", value: "JWT_KEY=/K,JwKs=/J,UserClaimField=Preferred_UserName",
			want: Auth{JWTKey: "/K", JWKS: "/J", UserClaimField: "Preferred_UserName"}},
		{name: "quoted", value: `"jwt_key=/a key,jwks=/j"`, want: withKeys("/a key", "/j")},
		{name: "quoted, with blanks", value: `" jwt_key = /k , jwks = /j "`, want: withKeys("/k", "/j")},
		{name: "extra commas", value: ",jwt_key=/k,,jwks=/j,", want: withKeys("/k", "/j")},
		{name: "an equals sign in the path", value: "jwt_key=/k=1", want: withKeys("/k=1", "")},
		{name: "a path that is not clean", value: "jwt_key=/a/../k", want: withKeys("/k", "")},
		{name: "a claim that is not the default", value: "jwks=/j,userclaimfield=preferred_username", want: Auth{JWKS: "/j", UserClaimField: "preferred_username"}},
		{name: "users can't create tokens", value: "jwt_key=/k,disable_token_creation", want: Auth{JWTKey: "/k", DisableTokenCreation: true}},
		{name: "users can't create tokens, in capitals", value: "DISABLE_TOKEN_CREATION", want: Auth{DisableTokenCreation: true}},
		{name: "a lifetime", value: "max_token_lifespan=60", want: Auth{MaxTokenLifespan: time.Minute}},
		{name: "the longest lifetime", value: "max_token_lifespan=31622400", want: Auth{MaxTokenLifespan: year}},
		{name: "above the longest lifetime", value: "max_token_lifespan=4294967295", want: Auth{MaxTokenLifespan: year},
			warning: "max_token_lifespan: reduced to the maximum, 31622400"},
		{name: "a parameter for Slurm's daemons", value: "use_client_ids,jwt_key=/k", want: withKeys("/k", ""), warning: `unknown parameter "use_client_ids", ignored`},
		{name: "several unknown", value: "x=1,jwt_key=/k,y", want: withKeys("/k", ""),
			warning: `unknown parameter "x", ignored; unknown parameter "y", ignored`},

		{name: "identities of the client", value: "use_jwt_client_ids", problem: "use_jwt_client_ids: the bundled daemons look users up on their own machine"},
		{name: "only identities of the client", value: "jwks=/j,use_jwt_client_ids_only", problem: "use_jwt_client_ids_only: the bundled daemons look users up on their own machine"},
		{name: "a relative key", value: "jwt_key=k", problem: "jwt_key: want an absolute path"},
		{name: "a relative key set", value: "jwks=./j", problem: "jwks: want an absolute path"},
		{name: "no key", value: "jwt_key=", problem: "jwt_key: want an absolute path"},
		{name: "no key set", value: "jwks", problem: "jwks: want an absolute path"},
		{name: "no claim", value: "userclaimfield=", problem: "userclaimfield: want the name of a claim"},
		{name: "no lifetime", value: "max_token_lifespan=", problem: "max_token_lifespan: want a number of seconds above 0"},
		{name: "0", value: "max_token_lifespan=0", problem: "max_token_lifespan: want a number of seconds above 0"},
		{name: "negative", value: "max_token_lifespan=-1", problem: "max_token_lifespan: want a number of seconds above 0"},
		{name: "a parameter without a value set to no", value: "disable_token_creation=no", problem: "disable_token_creation: takes no value"},
		{name: "a parameter without a value set to nothing", value: "disable_token_creation=", problem: "disable_token_creation: takes no value"},
		{name: "two keys", value: "jwt_key=/k,jwt_key=/l", problem: `"jwt_key" is given twice`},
		{name: "one key twice", value: "jwt_key=/k,JWT_KEY=/k", problem: `"jwt_key" is given twice`},
		{name: "two key sets", value: "jwks=/k,jwks=/l", problem: `"jwks" is given twice`},
		{name: "two claims", value: "userclaimfield=a,userclaimfield=b", problem: `"userclaimfield" is given twice`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.want.AuthType, tt.want.AuthSocket = "auth/cred", ControllerSocket
			wantDbd := tt.want
			wantDbd.AuthSocket = AccountingSocket
			line := "AuthAltParameters=" + tt.value
			c, warnings, err := readCluster("/f", files{"/f": minimal + line}.open)
			d, dbdWarnings, dbdErr := readDbd("/f", files{"/f": "#\nStorageLoc=/s\n" + line}.open)
			var got, inDbd Auth
			if err == nil && dbdErr == nil {
				got, inDbd = c.Auth, d.Auth
			} else {
				tt.want, wantDbd = Auth{}, Auth{}
			}
			if diff := cmp.Diff(tt.want, got) + cmp.Diff(wantDbd, inDbd); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			var wantProblems, wantWarnings []string
			if tt.problem != "" {
				wantProblems = []string{"/f:3: AuthAltParameters: " + tt.problem}
			}
			if tt.warning != "" {
				wantWarnings = []string{"/f:3: AuthAltParameters: " + tt.warning}
			}
			for _, e := range []error{err, dbdErr} {
				var lines []string
				if e != nil {
					lines = strings.Split(e.Error(), "\n")
				}
				if diff := cmp.Diff(wantProblems, lines, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("problems: -want +got\n%s", diff)
				}
			}
			for _, w := range [][]Warning{warnings, dbdWarnings} {
				if diff := cmp.Diff(wantWarnings, texts(w), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("warnings: -want +got\n%s", diff)
				}
			}
		})
	}
}

// TestParametersBehindABlank parses lists of parameters that contain a space.
// The space ends the value, so the next parameter is read as a key. This must
// be an error. If it caused only a warning, like an unknown key, the gateway
// would start without the restriction that the parameter sets.
func TestParametersBehindABlank(t *testing.T) {
	for line, want := range map[string]string{
		"AuthAltParameters=jwt_key=/k, jwks=/j":               "/f:3: jwks: is a parameter of AuthAltParameters=; write it there, after a comma and without spaces",
		"AuthAltParameters=jwks=/j, JWT_KEY=/k":               "/f:3: JWT_KEY: is a parameter of AuthAltParameters=; write it there, after a comma and without spaces",
		"AuthAltParameters=jwks=/j, userclaimfield=mail":      "/f:3: userclaimfield: is a parameter of AuthAltParameters=; write it there, after a comma and without spaces",
		"AuthAltParameters=jwks=/j, max_token_lifespan=60":    "/f:3: max_token_lifespan: is a parameter of AuthAltParameters=; write it there, after a comma and without spaces",
		"AuthAltParameters=jwt_key=/k disable_token_creation": "/f:3: column 30: want Key=Value",
	} {
		_, _, err := readCluster("/f", files{"/f": minimal + line}.open)
		if err == nil || err.Error() != want {
			t.Errorf("%s: got %v", line, err)
		}
	}
}

func TestLongestToken(t *testing.T) {
	for configured, want := range map[time.Duration]time.Duration{0: 30 * 24 * time.Hour, time.Minute: time.Minute} {
		if got := (&Auth{MaxTokenLifespan: configured}).LifespanLimit(); got != want {
			t.Errorf("%v configured: %v, want %v", configured, got, want)
		}
	}
}
