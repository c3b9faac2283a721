package client_test

import (
	"net"
	"testing"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/client"
)

// TestRestedSessionIsSilent checks a session whose daemon no longer answers. If
// the session was idle for a while, the call must find this out soon, and be
// answered in a new session. If the session was used a moment ago, the call must
// use all of its time, because the daemon may only be slow.
func TestRestedSessionIsSilent(t *testing.T) {
	t.Parallel()
	good := model.Credential{Token: "good"}
	for _, tt := range []struct {
		name          string
		timeout, long time.Duration
		stale         time.Duration
		rested        bool
	}{
		{name: "rested", timeout: 4 * time.Second, long: time.Hour, stale: time.Nanosecond, rested: true},
		{name: "just used", timeout: time.Hour, long: time.Second, stale: time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k, done := newKeeper(t), make(chan struct{})
			defer close(done)
			if tt.rested {
				k.silent = 2 // the first end of a transaction is that of the first call
			} else {
				k.act = func(_ net.Conn, question int) bool {
					if question > 0 {
						<-done
					}
					return question == 0
				}
			}
			a := client.NewAccounting(client.Config{Accounting: []client.Address{k.Address}, Timeout: tt.timeout, LongTimeout: tt.long})
			a.SetStaleAfter(tt.stale)
			mustAsk(t, a, good)
			k.openings()
			_, err := ask(a, good)
			if tt.rested && err != nil || !tt.rested && errs.KindOf(err) != errs.Timeout {
				t.Errorf("got %v", err)
			}
			if opened := k.openings(); (len(opened) == 1) != tt.rested {
				t.Errorf("sessions opened: %q", opened)
			}
		})
	}
}
