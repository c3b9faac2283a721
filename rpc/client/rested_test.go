package client_test

import (
	"net"
	"testing"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/client"
)

// TestRestedSessionIsSilent checks a session whose daemon does not answer. If
// the session was idle for a while, it may use only part of the call's time,
// and a new session must get the rest. If the session was used a moment ago, it
// must get all of the time, because its daemon may only be slow.
func TestRestedSessionIsSilent(t *testing.T) {
	t.Parallel()
	good := model.Credential{Token: "good"}
	for name, rested := range map[string]bool{"rested": true, "just used": false} {
		t.Run(name, func(t *testing.T) {
			k, done := newKeeper(t), make(chan struct{})
			defer close(done)
			k.act = func(_ net.Conn, question int) bool {
				if question > 0 {
					<-done
				}
				return question == 0
			}
			a := client.NewAccounting(client.Config{Accounting: []client.Address{k.Address}, Timeout: 4 * time.Second})
			a.SetStaleAfter(time.Hour)
			if rested {
				a.SetStaleAfter(time.Nanosecond)
			}
			mustAsk(t, a, good)
			k.openings()
			_, err := ask(a, good)
			if rested && err != nil || !rested && errs.KindOf(err) != errs.Timeout {
				t.Errorf("got %v", err)
			}
			if opened := k.openings(); (len(opened) == 1) != rested {
				t.Errorf("sessions opened: %q", opened)
			}
		})
	}
}
