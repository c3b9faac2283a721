package auth

import (
	"testing"
	"time"
)

func TestKeyForAPurpose(t *testing.T) {
	key, err := NewKey(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]Key{"the key itself": key, "a purpose": key.Derive("one"), "another": key.Derive("two")}
	for maker, makerKey := range keys {
		token, err := Create(makerKey, "ann", time.Minute, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		for verifier, k := range keys {
			if _, err := (Verifier{Key: k}).Verify(token); (err == nil) != (maker == verifier) {
				t.Errorf("token of %s, verified with the key for %s: %v", maker, verifier, err)
			}
		}
	}
	if _, err := Create(Key{}.Derive("one"), "ann", time.Minute, time.Now()); err == nil {
		t.Error("a key was derived from the zero Key")
	}
}
