package auth

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// vectors is the content of a file of Project Wycheproof.
type vectors struct {
	NumberOfTests int
	TestGroups    []struct {
		Comment         string
		Public, Private json.RawMessage // a key or a set of keys; for a secret, only Private is set
		Tests           []struct {
			TcID        int
			Comment     string
			JWS, Result string
		}
	}
}

// stricter lists the test cases in which our verdict differs from the expected
// one, with the reasons.
var stricter = map[string]string{
	"json_web_signature_test.json 367": "was to have padding, and has none: the very text of case 357, which is valid",
	"json_web_signature_test.json 370": "was to have padding, and has none: the very text of case 357, which is valid",
	"json_web_signature_test.json 372": "RFC 7515 2: a question mark is not base64url, and we read that strictly",
	"json_web_signature_test.json 373": "RFC 7515 2: a question mark is not base64url, and we read that strictly",
	"json_web_key_test.json 2":         "two secret keys in a set: a key set has public keys alone, and HS256 has one key, in a file of its own",
}

// TestWycheproof checks how we verify the form and the signature of a token. It
// uses the public test vectors of Project Wycheproof. The payloads of these
// tokens contain no claims, so the test does not check claims. Tokens with any
// algorithm except HS256 and RS256 must be refused, even if the test vector
// expects them to be valid.
func TestWycheproof(t *testing.T) {
	dir := os.Getenv("WYCHEPROOF")
	if dir == "" {
		dir = "../../shared/vectors/wycheproof" // next to the repository
	}
	needed := map[string]bool{}
	for _, file := range []struct {
		name        string
		cases, good int // counts when the file was downloaded; lower counts would mean lost coverage
	}{{"json_web_signature_test.json", 401, 18}, {"json_web_key_test.json", 26, 2}} {
		t.Run(file.name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join(dir, file.name))
			switch {
			case err != nil && os.Getenv("CI") == "true":
				t.Fatalf("%v (set WYCHEPROOF)", err)
			case err != nil:
				t.Skipf("%v (set WYCHEPROOF)", err)
			}
			var all vectors
			must(t, json.Unmarshal(data, &all))
			cases, good := 0, 0
			for _, group := range all.TestGroups {
				v := verifierOf(t, group.Public, group.Private)
				for _, test := range group.Tests {
					id := fmt.Sprintf("%s %d", file.name, test.TcID)
					want := test.Result == "valid" && hasOurAlgorithm(test.JWS)
					got := accepts(v, test.JWS)
					cases++
					if got {
						good++
					}
					switch _, known := stricter[id]; {
					case got != want && !known:
						t.Errorf("%s (%s, %s): accepted is %v, the verdict %s", id, group.Comment, test.Comment, got, test.Result)
					case got != want:
						needed[id] = true
					}
				}
			}
			if cases != all.NumberOfTests || cases < file.cases || good < file.good {
				t.Errorf("%d cases, %d accepted; the file says %d, and had %d and %d", cases, good, all.NumberOfTests, file.cases, file.good)
			}
			for id, reason := range stricter {
				if strings.HasPrefix(id, file.name) && !needed[id] {
					t.Errorf("%s is no longer an exception (%s)", id, reason)
				}
			}
		})
	}
}

// accepts reports whether a token is genuine. It ignores the claims.
func accepts(v Verifier, token string) bool {
	p, err := parse(token)
	return err == nil && v.verifySignature(p) == nil
}

// hasOurAlgorithm reports whether a token's header names HS256 or RS256.
func hasOurAlgorithm(token string) bool {
	head, _, _ := strings.Cut(token, ".")
	raw, _ := base64.RawURLEncoding.DecodeString(strings.ReplaceAll(head, "?", ""))
	var header struct{ Alg string }
	return json.Unmarshal(raw, &header) == nil && (header.Alg == "HS256" || header.Alg == "RS256")
}

// verifierOf returns a verifier with the keys of a test group. If the only key
// is a secret for HS256, the verifier uses it as its Key. Otherwise the keys
// form a key set, as an administrator would configure them. If ParseKeySet
// refuses the set, the verifier has no key.
func verifierOf(t *testing.T, public, private json.RawMessage) Verifier {
	t.Helper()
	raw := public
	if raw == nil {
		raw = private
	}
	var set struct{ Keys []json.RawMessage }
	must(t, json.Unmarshal(raw, &set))
	if set.Keys == nil {
		set.Keys = []json.RawMessage{raw}
	}
	var first struct{ Kty, Alg, K string }
	must(t, json.Unmarshal(set.Keys[0], &first))
	if len(set.Keys) == 1 && first.Kty == "oct" && first.Alg == "HS256" {
		secret, err := base64.RawURLEncoding.DecodeString(first.K)
		must(t, err)
		key, _ := NewKey(secret)
		return Verifier{Key: key}
	}
	text, err := json.Marshal(set.Keys)
	must(t, err)
	keys, err := ParseKeySet(fmt.Appendf(nil, `{"keys":%s}`, text))
	if err != nil {
		return Verifier{}
	}
	return Verifier{Keys: func() *KeySet { return keys }}
}
