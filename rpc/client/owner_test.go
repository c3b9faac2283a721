package client

import (
	"net"
	"testing"
	"time"

	"schedrestd/model"
)

// TestOwners checks that an idle session serves only its own owner: what one
// daemon accepted for one token and one user says nothing about another daemon,
// token or user.
func TestOwners(t *testing.T) {
	head, backup := new(daemon), new(daemon)
	cred := model.Credential{Token: "token", ActAs: "alice"}
	near, far := net.Pipe()
	t.Cleanup(func() { near.Close(); far.Close() })
	var p sessions
	p.put(&session{nc: near, owner: ownerOf(head, cred), expires: time.Now().Add(time.Hour), close: func() {}})
	for name, other := range map[string]owner{
		"another daemon":       ownerOf(backup, cred),
		"another token":        ownerOf(head, model.Credential{Token: "other", ActAs: "alice"}),
		"another user":         ownerOf(head, model.Credential{Token: "token", ActAs: "bob"}),
		"the token's own user": ownerOf(head, model.Credential{Token: "token"}),
		"no token":             ownerOf(head, model.Credential{}),
	} {
		if p.get(other) != nil {
			t.Errorf("%s got the session", name)
		}
	}
	if p.get(ownerOf(head, cred)) == nil {
		t.Error("the owner did not get the session")
	}
}
