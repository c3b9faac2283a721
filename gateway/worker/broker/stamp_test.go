package broker

import (
	"bytes"
	"errors"
	"sync/atomic"
	"testing"

	"schedrestd/auth"
	"schedrestd/internal/errs"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
)

// TestStamp checks what a worker sends for the credential of a message, and what the
// answers of the keeper mean.
func TestStamp(t *testing.T) {
	token := auth.Signature{Signed: "a.b", Bytes: bytes.Repeat([]byte{7}, 32)}
	good := query.Stamped{Verdict: query.Genuine, Credential: []byte("MUNGE:x:")}
	missing := query.Stamped{Verdict: query.Genuine, Client: 9, UID: 1000}
	for _, tt := range []struct {
		name    string
		body    int // bytes
		answers []query.Stamped
		want    errs.Kind // 0: the credential
		asked   int       // how often the dispatcher is asked for a process
	}{
		{"a credential", 10, []query.Stamped{good}, 0, 0},
		{"no body", 0, []query.Stamped{good}, 0, 0},
		{"a whole part", stampPart, []query.Stamped{good}, 0, 0},
		{"a long body", 3*stampPart + 1, []query.Stamped{good}, 0, 0},
		{"a process has to start", 2 * stampPart, []query.Stamped{missing, good}, 0, 1},
		{"it exits once", 2 * stampPart, []query.Stamped{missing, missing, good}, 0, 2},
		{"it exits again and again", 1, []query.Stamped{missing, missing, missing, missing}, errs.Unavailable, 3},
		{"no answer of munged", 1, []query.Stamped{{Verdict: query.Genuine, Reason: "munged can't be reached"}}, errs.Unavailable, 0},
		{"revoked", 1, []query.Stamped{{Verdict: query.Revoked}}, errs.Unauthenticated, 0},
		{"forged", 1, []query.Stamped{{Verdict: query.Forged}}, errs.Unauthenticated, 0},
		{"not for this user", 1, []query.Stamped{{Verdict: query.NotForUser}}, errs.Denied, 0},
		{"not in scope", 1, []query.Stamped{{Verdict: query.NotInScope}}, errs.Denied, 0},
		{"no verdict", 1, []query.Stamped{{Verdict: query.NoVerdict}}, errs.Unavailable, 0},
		{"another key", 1, []query.Stamped{{Verdict: query.Outdated}}, errs.Unavailable, 0},
	} {
		keeper := NewKeeper()
		c := keeperEnd(t, keeper)
		var asked atomic.Int32
		s := New(func(m ipc.Message, _ ...int) error {
			if a, ok := m.(*work.AskCredential); !ok || a.Client != 9 || a.UID != 1000 {
				t.Errorf("%s: sent %+v", tt.name, m)
			}
			asked.Add(1)
			return nil
		}).Stamper(keeper)
		body := bytes.Repeat([]byte("0123456789"), tt.body/10+1)[:tt.body]
		go func() {
			for _, answer := range tt.answers {
				var got []byte
				for {
					m, err := c.Receive()
					if err != nil {
						return
					}
					if part, ok := m.Message.(*query.StampPart); ok {
						got = append(got, part.Body...)
						continue
					}
					q := m.Message.(*query.Stamp)
					if got = append(got, q.Body...); !bytes.Equal(got, body) || q.Type != 4003 || q.ActAs != "alice" || string(q.Signed) != "a.b" || q.MAC[0] != 7 {
						t.Errorf("%s: the keeper gets %d bytes and %+v", tt.name, len(got), q)
					}
					answer.ID = q.ID
					_ = c.Send(&answer)
					break
				}
			}
		}()
		text, err := s.Stamp(t.Context(), token, "alice", 4003, body)
		if tt.want == 0 && (err != nil || text != "MUNGE:x:") || tt.want != 0 && (errs.KindOf(err) != tt.want || text != "") {
			t.Errorf("%s: %q, %v", tt.name, text, err)
		}
		if errors.Is(err, auth.ErrNotInScope) != (tt.name == "not in scope") || keeper.IsOutdated() != (tt.name == "another key") {
			t.Errorf("%s: %v, outdated %t", tt.name, err, keeper.IsOutdated())
		}
		if n := int(asked.Load()); n != tt.asked {
			t.Errorf("%s: the dispatcher is asked %d times", tt.name, n)
		}
	}
	if _, err := New(nil).Stamper(NewKeeper()).Stamp(t.Context(), token, "", 1, nil); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("without a keeper: %v", err)
	}
	if _, err := New(nil).Stamper(NewKeeper()).Stamp(t.Context(), auth.Signature{Bytes: token.Bytes[:31]}, "", 1, nil); errs.KindOf(err) != errs.Unauthenticated {
		t.Errorf("a short signature: %v", err)
	}
}
