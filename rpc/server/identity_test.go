package server

import (
	"testing"

	"schedrestd/become"
	"schedrestd/internal/errs"
	"schedrestd/rpc/message"
)

// TestKernelIdentity checks which clients of a UNIX socket the kernel identifies,
// and that no client of a TCP port gets the identity of root.
func TestKernelIdentity(t *testing.T) {
	for _, tt := range []struct {
		name string
		peer become.Ucred
		ok   bool
	}{
		{"a user", become.Ucred{UID: 1000, GID: 100}, true},
		{"root", become.Ucred{}, true},
		{"a user in root's group", become.Ucred{UID: 1000}, false},
		{"a user of another user namespace", become.Ucred{UID: become.Overflow, GID: 100}, false},
		{"a group of another user namespace", become.Ucred{UID: 1000, GID: become.Overflow}, false},
		{"no ids", become.Ucred{UID: become.NoID, GID: become.NoID}, false},
	} {
		c := &conn{local: true, peer: tt.peer}
		id, err := c.identify(message.Credential{Plugin: message.PluginNone})
		if tt.ok && (err != nil || id != Identity{UID: tt.peer.UID, GID: tt.peer.GID, FromKernel: true}) {
			t.Errorf("%s: %+v, %v", tt.name, id, err)
		}
		if !tt.ok && (errs.KindOf(err) != errs.Unauthenticated || id != Identity{}) {
			t.Errorf("%s: %+v, %v", tt.name, id, err)
		}
	}
}
