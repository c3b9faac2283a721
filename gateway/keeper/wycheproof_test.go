package keeper

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"schedrestd/ipc/query"
)

// TestWycheproof tests the keeper with the public test vectors for HS256.
// auth.TestWycheproof tests the daemons with the same vectors, because the two
// implementations must not differ. Normally a worker splits a token, checks its
// form and sends its parts to the keeper. In this test, splitToken replaces the
// worker.
func TestWycheproof(t *testing.T) {
	dir := os.Getenv("WYCHEPROOF")
	if dir == "" {
		dir = "../../../shared/vectors/wycheproof" // next to the repository
	}
	data, err := os.ReadFile(filepath.Join(dir, "json_web_signature_test.json"))
	switch {
	case err != nil && os.Getenv("CI") == "true":
		t.Fatalf("%v (set WYCHEPROOF)", err)
	case err != nil:
		t.Skipf("%v (set WYCHEPROOF)", err)
	}
	var all struct {
		TestGroups []struct {
			Private struct{ Kty, Alg, K string }
			Tests   []struct {
				TcID                 int
				Comment, JWS, Result string
			}
		}
	}
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	cases, good := 0, 0
	for _, group := range all.TestGroups {
		if group.Private.Kty != "oct" || group.Private.Alg != "HS256" {
			continue
		}
		secret, err := base64.RawURLEncoding.DecodeString(group.Private.K)
		if err != nil {
			t.Fatal(err)
		}
		key := &tokenKey{secret: secret, followed: true} // not readTokenKey, which refuses the weak keys of some vectors; TestTokenKeys tests readTokenKey
		for _, test := range group.Tests {
			cases++
			question := query.Verify{}
			got := splitToken(test.JWS, &question) && key.verify(&question) == query.Genuine
			if got {
				good++
			}
			if want := (test.Result == "valid") != slices.Contains(stricter, test.TcID); got != want {
				t.Errorf("%d (%s): genuine is %v, the vectors say %s", test.TcID, test.Comment, got, test.Result)
			}
		}
	}
	if cases < 40 || good < 9 { // the counts when the vectors were downloaded; lower counts would mean lost coverage
		t.Errorf("%d cases, %d genuine", cases, good)
	}
}

// stricter lists the vectors for which the gateway's result differs from the
// expected result. auth/wycheproof_test.go gives the reasons.
var stricter = []int{367, 370, 372, 373}

// splitToken sets q to the question that a worker would ask the keeper about a
// token. It returns false if a worker would ask nothing.
func splitToken(token string, q *query.Verify) bool {
	texts := strings.Split(token, ".")
	if len(texts) != 3 {
		return false
	}
	var parts [3][]byte
	for i, text := range texts {
		var err error
		if parts[i], err = base64.RawURLEncoding.Strict().DecodeString(text); err != nil {
			return false
		}
	}
	var header struct{ Alg string }
	if json.Unmarshal(parts[0], &header) != nil || header.Alg != "HS256" || len(parts[2]) != len(q.MAC) {
		return false
	}
	q.Signed = []byte(texts[0] + "." + texts[1])
	copy(q.MAC[:], parts[2])
	return true
}
