package keeper

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"schedrestd/auth/gatewaytoken"
	"schedrestd/become"
	"schedrestd/ipc/query"
)

// TestSign checks what a credential contains, and which key signs it, with an
// implementation of tokens that is not ours.
func TestSign(t *testing.T) {
	const (
		first  = `{"kty":"oct","alg":"HS256","kid":"first","k":"Zmlyc3Qga2V5IG9mIHRoZSBzZXQ"}`
		second = `{"kty":"oct","alg":"HS256","kid":"second","k":"_-8gc2Vjb25kIGtleSBvZiB0aGUgc2V0","use":"default"}`
	)
	raw := strings.Repeat("raw key of Slurm", 64)
	for name, tt := range map[string]struct{ file, secret, id string }{
		"raw bytes":    {raw, raw, ""},
		"the first":    {`{"keys":[` + first + `]}`, "first key of the set", "first"},
		"the default":  {`{"keys":[` + first + "," + second + `]}`, "\xff\xef second key of the set", "second"},
		"a brace":      {"{" + raw, "{" + raw, ""},
		"old alphabet": {`{"keys":[` + strings.Replace(second, "_-8g", "/+8g", 1) + `]}`, "\xff\xef second key of the set", "second"},
	} {
		t.Run(name, func(t *testing.T) {
			k, err := readSigningKey(file(t, tt.file))
			if err != nil {
				t.Fatal(err)
			}
			now := time.Now().Truncate(time.Second)
			payload := append([]byte{2}, make([]byte, 32)...)
			text := k.sign(&query.Membership{UID: 1001, GID: 100}, &register{Register: new(gatewaytoken.Register), cluster: "c", schedUID: 64030}, payload, now, now.Add(time.Hour))
			token, err := jwt.NewParser(jwt.WithValidMethods([]string{"HS256"})).Parse(string(text), func(*jwt.Token) (any, error) { return []byte(tt.secret), nil })
			if err != nil {
				t.Fatal(err)
			}
			var got signedMessage
			claims, err := base64.RawURLEncoding.DecodeString(strings.Split(string(text), ".")[1])
			if err != nil || json.Unmarshal(claims, &got) != nil {
				t.Fatalf("%s: %v", claims, err)
			}
			id, _ := token.Header["kid"].(string)
			want := signedMessage{Issued: now.Unix(), Expires: now.Unix() + 60, Version: 40 << 8, Only: 64030, Context: "sack", Cluster: "c", UID: 1001, GID: 100, Host: hostname, Payload: payload}
			if diff := cmp.Diff(want, got); diff != "" || id != tt.id {
				t.Errorf("kid %q (-want +got):\n%s", id, diff)
			}
		})
	}
}

// TestSignLess checks that a credential expires with the token, and that the resolver
// can't give a user root's group.
func TestSignLess(t *testing.T) {
	k, err := readSigningKey(file(t, strings.Repeat("raw key of Slurm", 64)))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	text := k.sign(&query.Membership{UID: 1001}, &register{Register: new(gatewaytoken.Register)}, nil, now, now.Add(7*time.Second))
	var got signedMessage
	claims, err := base64.RawURLEncoding.DecodeString(strings.Split(string(text), ".")[1])
	if err != nil || json.Unmarshal(claims, &got) != nil || got.GID != become.Overflow || got.Expires != now.Add(7*time.Second).Unix() {
		t.Errorf("%s: %v", claims, err)
	}
}

// TestUnusableSigningKeys checks that a key with which Slurm would not sign is refused, and
// that the reason does not show it, and has the words by which the parent knows which key
// was refused.
func TestUnusableSigningKeys(t *testing.T) {
	const good = `{"kty":"oct","alg":"HS256","kid":"a","k":"c2VjcmV0IHNlY3JldCBzZWNyZXQ"}`
	change := func(old, text string) string { return `{"keys":[` + strings.Replace(good, old, text, 1) + `]}` }
	if _, err := readSigningKey(file(t, change("", ""))); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"short":           "secret",
		"long":            strings.Repeat("secret", 64<<10),
		"a public key":    "-----BEGIN PUBLIC KEY-----\nsecretsecretsecretsecret\n-----END PUBLIC KEY-----",
		"not JSON":        `{"keys":[` + good,
		"no keys":         `{"keys":[]}`,
		"another object":  `{"secret":"secret"}`,
		"RSA":             change("oct", "RSA"),
		"another alg":     change("HS256", "HS512"),
		"no id":           change(`"kid":"a",`, ""),
		"short k":         change("c2VjcmV0IHNlY3JldCBzZWNyZXQ", "c2VjcmV0"),
		"k not base64":    change("c2Vj", "c2V!"),
		"empty":           "",
		"two defaults":    `{"keys":[` + strings.Replace(good, `"kid"`, `"use":"default","kid"`, 1) + "," + strings.Replace(good, `"kid":"a"`, `"use":"default","kid":"b"`, 1) + `]}`,
		"exp not whole":   change(`"kid":"a"`, `"kid":"a","exp":1.9e12`),
		"expired":         change(`"kid":"a"`, `"kid":"a","exp":1700000000`),
		"expired default": `{"keys":[` + good + `,{"kty":"oct","alg":"HS256","kid":"b","use":"default","exp":"1700000000","k":"c2VjcmV0IHNlY3JldCBzZWNyZXQ"}]}`,
	} {
		k, err := readSigningKey(file(t, text))
		if k != nil || err == nil || !strings.Contains(err.Error(), "key of credentials") || strings.Contains(err.Error(), "secretsecret") || strings.Contains(err.Error(), "c2Vj") {
			t.Errorf("%s: %v", name, err)
		}
	}
	fd, err := unix.MemfdCreate("empty", 0)
	if err != nil {
		t.Fatal(err)
	}
	none := os.NewFile(uintptr(fd), "none")
	defer none.Close()
	if k, err := readSigningKey(none); k != nil || err != nil {
		t.Errorf("no file: %v, %v", k, err)
	}
}
