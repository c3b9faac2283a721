package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"schedrestd/auth"
	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/rpc/fault"
)

func TestTokenWords(t *testing.T) {
	tests := []struct {
		words    string
		user     string
		lifespan time.Duration
		wantErr  string // "" if it succeeds
	}{
		{words: ""},
		{words: "username=ann", user: "ann"},
		{words: "lifespan=60 USERNAME=ann", user: "ann", lifespan: time.Minute},
		{words: "lifespan=31622400", lifespan: 366 * 24 * time.Hour},
		{words: "lifespan=31622401", wantErr: "lifespan=31622401 is too long: the maximum is 31622400 seconds"},
		{words: "lifespan=4294967297", wantErr: "is too long: the maximum is 31622400 seconds"}, // would be 1 if it were truncated to 32 bits
		{words: "lifespan=18446744073709551617", wantErr: "is too long"},
		{words: "lifespan=99999999999999999999999999", wantErr: "is too long"},
		{words: "lifespan=0", wantErr: "lifespan=0 is not a number of seconds above 0"},
		{words: "lifespan=-1", wantErr: "lifespan=-1 is not a number of seconds above 0"},
		{words: "lifespan=-18446744073709551617", wantErr: "is not a number of seconds above 0"},
		{words: "lifespan=", wantErr: "lifespan= is not a number of seconds above 0"},
		{words: "lifespan", wantErr: "is not a number of seconds above 0"},
		{words: "lifespan=1e3", wantErr: "is not a number of seconds above 0"},
		{words: "lifespan=0x10", wantErr: "is not a number of seconds above 0"},
		{words: "lifespan=+5", wantErr: "is not a number of seconds above 0"},
		{words: "lifespan=1.5", wantErr: "is not a number of seconds above 0"},
		{words: "lifespan=infinite", wantErr: "is not a number of seconds above 0"},
		{words: "lifespan=5 lifespan=6", wantErr: "lifespan= is set twice"},
		{words: "username=ann UserName=bea", wantErr: "username= is set twice"},
		{words: "username=", wantErr: "username= needs a name"},
		{words: "ann", wantErr: `unknown argument "ann"`},
		{words: strings.Repeat("secret", 20), wantErr: `unknown argument "secretsecr…"`},
	}
	for _, tt := range tests {
		t.Run(tt.words, func(t *testing.T) {
			user, lifespan, err := parseTokenArgs(strings.Fields(tt.words))
			if user != tt.user && tt.wantErr == "" || lifespan != tt.lifespan && tt.wantErr == "" {
				t.Errorf("%q, %v", user, lifespan)
			}
			if (err == nil) != (tt.wantErr == "") || err != nil && !strings.Contains(err.Error(), tt.wantErr) {
				t.Errorf("got %v, want %q", err, tt.wantErr)
			}
			if err != nil && strings.Contains(err.Error(), strings.Repeat("secret", 20)) {
				t.Errorf("shows what may be a token: %v", err)
			}
		})
	}
}

// TestWhyNoToken checks the errors and hints that users see when the controller
// refuses to create a token.
func TestWhyNoToken(t *testing.T) {
	tests := []struct {
		number uint32
		user   string
		auth   conf.Auth
		text   string
		hint   string
	}{
		{fault.InvalidTimeLimit, "", conf.Auth{}, "2592000 seconds", "max_token_lifespan="},
		{fault.InvalidTimeLimit, "", conf.Auth{MaxTokenLifespan: time.Minute}, "which is 60 seconds", "max_token_lifespan="},
		{fault.AccessDenied, "bea", conf.Auth{}, "may create tokens for other users", "omit username="},
		{fault.AccessDenied, "", conf.Auth{}, "may create tokens on this cluster", "disable_token_creation"},
		{fault.AccessDenied, "ann", conf.Auth{DisableTokenCreation: true}, "may create tokens on this cluster", "disable_token_creation"},
		{fault.BadUser, "nobody", conf.Auth{}, "tokens for nobody can't be created: no daemon accepts them", "group 0"},
		{fault.BadUser, "", conf.Auth{}, "tokens for you can't be created", "65534"},
		{fault.UnknownUser, "zoe", conf.Auth{}, "unknown user", "on the controller's machine"},
		{fault.NoToken, "", conf.Auth{}, "no key to sign tokens", "jwt_key=PATH"},
	}
	for _, tt := range tests {
		err := withTokenHint(fault.Of(tt.number, ""), tt.user, tt.auth)
		if !strings.Contains(err.Error(), tt.text) || !strings.Contains(errs.HintOf(err), tt.hint) || errs.KindOf(err) != fault.Of(tt.number, "").Kind {
			t.Errorf("%d: %v, hint %s", tt.number, err, errs.HintOf(err))
		}
	}
	other := fault.Of(fault.Authentication, "")
	if err := withTokenHint(other, "", conf.Auth{}); err != error(other) {
		t.Errorf("another refusal became %v", err)
	}
}

// TestWhyRefused checks that only users with a token get the hint to create a
// new token.
func TestWhyRefused(t *testing.T) {
	for _, tt := range []struct {
		token    bool
		uid, gid int
		want     string
	}{
		{true, 1000, 1000, "run: unset SCHED_JWT"},
		{true, 65534, 65534, "run: unset SCHED_JWT"},
		{false, 65534, 65534, "you are uid 65534, gid 65534: uid and gid 65534 (nobody)"},
		{false, 1000, 65534, "you are uid 1000, gid 65534: "},
		{false, 1000, 0, "you are uid 1000, gid 0: "},
		{false, 1000, 1000, "see the controller's log"},
		{false, 0, 0, "see the controller's log"},
	} {
		got := refusalHint(tt.token, tt.uid, tt.gid)
		if !strings.Contains(got, tt.want) || strings.Contains(got, "token") != tt.token || strings.Contains(got, "you are") != strings.Contains(tt.want, "you are") {
			t.Errorf("%t, %d, %d: %s", tt.token, tt.uid, tt.gid, got)
		}
	}
}

// TestWarnOfItsEnd checks that a warning is printed when the new token expires
// earlier than requested.
func TestWarnOfItsEnd(t *testing.T) {
	now := time.Now().Unix()
	for _, tt := range []struct {
		token       string
		wantWarning bool
	}{
		{makeToken(fmt.Sprintf(`{"iat":%d,"exp":%d,"sun":"ann"}`, now, now+59)), true},
		{makeToken(fmt.Sprintf(`{"iat":%d,"exp":%d,"mail":"ann"}`, now, now+59)), true},
		{makeToken(fmt.Sprintf(`{"iat":%d,"exp":%d,"sun":"ann"}`, now, now+60)), false},
		{makeToken(fmt.Sprintf(`{"iat":%d,"exp":%d,"sun":"ann"}`, now, now+61)), false},
		{"of another kind", false},
	} {
		var out bytes.Buffer
		warnEarlyExpiry(&out, tt.token, auth.Rules{UserField: "mail"}, time.Minute)
		text, expiry := out.String(), time.Unix(now+59, 0).Format(time.RFC3339)
		if tt.wantWarning != (text != "") || tt.wantWarning && (!strings.HasPrefix(text, "warning: the new token expires together with the token in use: at "+expiry+", after 59 seconds instead of 60\nhint: ") ||
			strings.Count(text, "\n") != 2) || strings.Contains(text, tt.token) {
			t.Errorf("said %q", text)
		}
	}
}

// TestTokenHelp checks that the help text of the token command names the
// default lifespan and both limits on the lifespan.
func TestTokenHelp(t *testing.T) {
	var out, errOut bytes.Buffer
	if status := run([]string{"token", "--help"}, &out, &errOut); status != 0 || errOut.Len() > 0 {
		t.Fatalf("status %d, %s", status, errOut.Bytes())
	}
	longest := (&conf.Auth{}).LifespanLimit()
	for _, want := range []string{fmt.Sprintf("for %d seconds", auth.DefaultLifespan/time.Second), "max_token_lifespan=",
		fmt.Sprintf("%d seconds (%d days)", longest/time.Second, longest/(24*time.Hour)), "the token in SCHED_JWT"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.Bytes())
		}
	}
}

// makeToken returns a token with the given claims, signed with an arbitrary
// key.
func makeToken(claims string) string {
	b64 := base64.RawURLEncoding.EncodeToString
	signed := b64([]byte(`{"alg":"HS256"}`)) + "." + b64([]byte(claims))
	mac := hmac.New(sha256.New, []byte("any"))
	mac.Write([]byte(signed))
	return signed + "." + b64(mac.Sum(nil))
}

// TestTokenOfTheEnvironment checks that tokenFromEnv reports an invalid token.
// The error must have a hint, and must not show the token.
func TestTokenOfTheEnvironment(t *testing.T) {
	now := time.Now().Unix()
	claims := func(from, to int64, user string) string {
		return fmt.Sprintf(`{"iat":%d,"exp":%d,%s}`, now+from, now+to, user)
	}
	good := makeToken(claims(0, 60, `"sun":"ann"`))
	mapped := makeToken(claims(0, 60, `"mail":"ann"`))
	expired := makeToken(claims(-3700, -100, `"sun":"ann"`))
	tests := []struct {
		name          string
		sched, slurm  string // "-" if not set
		field         string
		want          string
		wantErr, hint string
	}{
		{name: "none", sched: "-", slurm: "-"},
		{name: "one", sched: good, slurm: "-", want: good},
		{name: "in the other spelling", sched: "-", slurm: good, want: good},
		{name: "in both", sched: good, slurm: good, want: good},
		{name: "by the site's claim", sched: mapped, slurm: "-", field: "mail", want: mapped},
		{name: "without that", sched: mapped, slurm: "-", wantErr: "no claim names the user", hint: "schedctl token"},
		{name: "nothing", sched: "", slurm: "-", wantErr: "SCHED_JWT is set but empty", hint: "unset SCHED_JWT"},
		{name: "nothing in the other spelling", sched: "-", slurm: "", wantErr: "SLURM_JWT is set but empty", hint: "unset SLURM_JWT"},
		{name: "the gateway's word", sched: "daemon", slurm: "-", wantErr: "which only schedrestd supports", hint: "unset SCHED_JWT"},
		{name: "the gateway's word in the other spelling", sched: "-", slurm: "daemon", wantErr: `SLURM_JWT is "daemon"`, hint: "unset SLURM_JWT"},
		{name: "garbage", sched: "good day", slurm: "-", wantErr: "the token in SCHED_JWT is invalid: not three segments", hint: "schedctl token"},
		{name: "with its name", sched: "SCHED_JWT=" + good, slurm: "-", want: good},
		{name: "with its name in the other spelling", sched: "-", slurm: "SLURM_JWT=" + good, want: good},
		{name: "its name alone", sched: "SCHED_JWT=", slurm: "-", wantErr: "contains no token", hint: "schedctl token"},
		{name: "two", sched: good, slurm: expired, wantErr: "are both set and differ", hint: "unset one of them"},
		{name: "expired", sched: expired, slurm: "-", wantErr: "the token in SCHED_JWT is invalid: expired ", hint: "unset SCHED_JWT SLURM_JWT; export $(schedctl token)"},
		{name: "of tomorrow", sched: makeToken(claims(86400, 90000, `"sun":"ann"`)), slurm: "-", wantErr: "issued 2", hint: "schedctl token"},
		{name: "unsigned", sched: good[:strings.LastIndexByte(good, '.')+1], slurm: "-", wantErr: "signature: wrong length", hint: "schedctl token"},
		{name: "a line end behind it", sched: good + "\n", slurm: "-", wantErr: "it has a line break after it", hint: "a token has only"},
		{name: "a line end of another system behind it", sched: good + "\r\n", slurm: "-", wantErr: "it has a line break after it", hint: "a token has only"},
		{name: "a line end in front", sched: "\n" + good, slurm: "-", wantErr: "it has a line break before it", hint: "a token has only"},
		{name: "a line end in it", sched: good[:40] + "\n" + good[40:], slurm: "-", wantErr: "it has a line break in it", hint: "a token has only"},
		{name: "quotes around it", sched: `"` + good + `"`, slurm: "-", wantErr: `it has a quote (") before it`, hint: "a token has only"},
		{name: "quotes and a line end", sched: "'" + good + "'\n", slurm: "-", wantErr: "it has a quote (') before it", hint: "a token has only"},
		{name: "a word processor's quotes", sched: "“" + good + "”", slurm: "-", wantErr: "it has a quote (“) before it", hint: "a token has only"},
		{name: "a quote behind it", sched: good + "”", slurm: "-", wantErr: "it has a quote (”) after it", hint: "a token has only"},
		{name: "a blank in front", sched: " " + good, slurm: "-", wantErr: "it has a space before it", hint: "a token has only"},
		{name: "a blank behind it", sched: good + " ", slurm: "-", wantErr: "it has a space after it", hint: "a token has only"},
		{name: "a blank that does not break", sched: "\u00a0" + good, slurm: "-", wantErr: "it has a space before it", hint: "a token has only"},
		{name: "a blank in it", sched: good[:40] + " " + good[40:], slurm: "-", wantErr: "it has a space in it", hint: "a token has only"},
		{name: "its scheme", sched: "Bearer " + good, slurm: "-", wantErr: `it has "Bearer" before it`, hint: "a token has only"},
		{name: "its scheme, in the other spelling", sched: "-", slurm: "bearer " + good, wantErr: `the token in SLURM_JWT is invalid: it has "Bearer" before it`, hint: "a token has only"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for name, value := range map[string]string{"SCHED_JWT": tt.sched, "SLURM_JWT": tt.slurm} {
				t.Setenv(name, value) // restores the old value after the test
				if value == "-" {
					os.Unsetenv(name)
				}
			}
			got, err := tokenFromEnv(auth.Rules{UserField: tt.field})
			if got != tt.want || (err == nil) != (tt.wantErr == "") {
				t.Fatalf("%q, %v", got, err)
			}
			if err == nil {
				return
			}
			if !strings.Contains(err.Error(), tt.wantErr) || !strings.Contains(errs.HintOf(err), tt.hint) {
				t.Errorf("%v\nhint: %s", err, errs.HintOf(err))
			}
			for _, part := range strings.Split(tt.sched, ".") {
				if len(part) > 20 && strings.Contains(err.Error()+errs.HintOf(err), part) {
					t.Errorf("shows the token: %v", err)
				}
			}
		})
	}
}

// TestInvalidTokenIsNotSent checks that schedctl does not connect to the
// controller if the token has expired.
func TestInvalidTokenIsNotSent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c")
	if err := os.WriteFile(path, []byte("ClusterName=c\nSchedctldHost=h(127.0.0.1)\nSchedctldPort=1\nAuthInfo=socket=/nowhere/s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SLURM_JWT", "")
	os.Unsetenv("SLURM_JWT")
	t.Setenv("SCHED_JWT", makeToken(fmt.Sprintf(`{"iat":1,"exp":%d,"sun":"ann"}`, time.Now().Unix()-60)))
	for _, args := range []string{"token", "ping", "show job", "show node", "cancel 1", "jobs"} {
		var out, errOut bytes.Buffer
		status := run(append([]string{"-f", path}, strings.Fields(args)...), &out, &errOut)
		if status != 4 || out.Len() > 0 || !strings.HasPrefix(errOut.String(), "error: the token in SCHED_JWT ") || !strings.Contains(errOut.String(), "expired ") ||
			!strings.Contains(errOut.String(), "\nhint: on the controller's machine, run: unset SCHED_JWT SLURM_JWT; export $(schedctl token)") {
			t.Errorf("%s: status %d, %s%s", args, status, out.Bytes(), errOut.Bytes())
		}
	}
}
