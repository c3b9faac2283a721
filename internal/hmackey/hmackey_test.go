package hmackey

import (
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	random := strings.Repeat("0123456789abcdef", MaxSize/16+1)
	for name, test := range map[string]struct{ data, want string }{
		"the shortest":                {random[:MinSize], ""},
		"the longest":                 {random[:MaxSize], ""},
		"a text with its line end":    {random[:31] + "\n", ""},
		"a private key in PEM":        {"-----BEGIN PRIVATE KEY-----\n" + random[:64], ""},
		"zero bytes within":           {"\x00\x00" + random[:30], ""},
		"a brace and random bytes":    {"{" + random[:64], ""},
		"the word within":             {random[:64] + `"keys"`, ""},
		"empty":                       {"", "0 bytes; HS256 needs at least 32"},
		"a byte less":                 {random[:MinSize-1], "31 bytes"},
		"a byte more":                 {random[:MaxSize+1], "longer than 65536 bytes"},
		"a public key":                {"\n-----BEGIN PUBLIC KEY-----\n" + random[:64], "public key"},
		"a public key of PKCS 1":      {"-----BEGIN RSA PUBLIC KEY-----\n" + random[:64], "public key"},
		"a certificate":               {"-----BEGIN CERTIFICATE-----\n" + random[:64], "certificate"},
		"a key of OpenSSH":            {"ssh-rsa " + random[:64], "public key"},
		"a key set":                   {`{"keys": [{"kty": "RSA", "e": "AQAB"}]}`, "use jwks= for it"},
		"a key set of some providers": {"\n {\n  \"issuer\": \"x\",\n  \"keys\": []\n}           ", "use jwks= for it"},
		"zeros":                       {strings.Repeat("\x00", 32), "the same byte 32 times"},
		"blanks":                      {strings.Repeat(" ", 40), "the same byte 40 times"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Check([]byte(test.data))
			switch {
			case err == nil && test.want == "":
			case err == nil || test.want == "" || !strings.Contains(err.Error(), test.want):
				t.Errorf("got %v, want %q", err, test.want)
			case len(test.data) > 8 && strings.Contains(err.Error(), test.data[:8]):
				t.Errorf("shows the key: %v", err)
			}
		})
	}
}
