package worker

import (
	"crypto/tls"
	"errors"
	"net"
	"testing"

	"schedrestd/gateway/worker/keys"
	"schedrestd/ipc/work"
)

// TestReclaimedInHandshake checks that a client commits no offence if its connection
// is closed for another client during its handshake, just before the worker writes.
func TestReclaimedInHandshake(t *testing.T) {
	st := newTestServer(t, work.Setup{Limits: testLimits}, nil)
	client, c := st.pair()
	go tls.Client(client, &tls.Config{InsecureSkipVerify: true}).Handshake()
	config := serverConfig(t, nil)
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, c.Close() }
	_, err := keys.Handshake(t.Context(), tls.Server(c, config), "")
	if offence, found := keys.Offence(err); found || !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v: an offence: %v, %v", err, found, offence)
	}
}
