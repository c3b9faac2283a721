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
	keys := map[string]Key{"the key itself": key, "a purpose": key.For("one"), "another": key.For("two")}
	for maker, with := range keys {
		token, err := Create(with, "ann", time.Minute, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		for judge, k := range keys {
			if _, err := (Verifier{Key: k}).Verify(token); (err == nil) != (maker == judge) {
				t.Errorf("token of %s judged by %s: %v", maker, judge, err)
			}
		}
	}
	if _, err := Create(Key{}.For("one"), "ann", time.Minute, time.Now()); err == nil {
		t.Error("a key was derived from the zero Key")
	}
}
