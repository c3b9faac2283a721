package client_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
	"schedrestd/internal/socket/sockettest"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
	"schedrestd/rpc/munge"
	"schedrestd/rpc/payload"
	"schedrestd/rpc/sack"
	"schedrestd/rpc/wire"
)

// A journal records the requests to a fake munged, and to the daemons that
// trust that munged.
type journal struct {
	mu       sync.Mutex
	asked    [][]byte // requests to munged, without the header
	requests []message.Frame
}

// munged issues numbered credentials: "MUNGE:1:", "MUNGE:2:", ….
func (j *journal) munged(nc net.Conn) {
	var header [11]byte
	if _, err := io.ReadFull(nc, header[:]); err != nil {
		return
	}
	request := make([]byte, binary.BigEndian.Uint32(header[7:]))
	if _, err := io.ReadFull(nc, request); err != nil {
		return
	}
	j.mu.Lock()
	j.asked = append(j.asked, request)
	text := fmt.Sprintf("MUNGE:%d:\x00", len(j.asked))
	j.mu.Unlock()
	body := append(binary.BigEndian.AppendUint32([]byte{0, 0}, uint32(len(text))), text...)
	nc.Write(append(binary.BigEndian.AppendUint32([]byte("\x00\x60\x6d\x4b\x04\x03\x00"), uint32(len(body))), body...))
}

// controller answers requests in the protocol of 24.11, or in an older one,
// with success. It answers requests in newer protocols with an error in the
// protocol of 24.11.
func (j *journal) controller(nc net.Conn) {
	b, err := wire.Read(nc, 1<<20)
	if err != nil {
		return
	}
	f, _ := message.ParseFrame(b)
	j.mu.Lock()
	j.requests = append(j.requests, f)
	j.mu.Unlock()
	if f.Header.Version > codec.V2411 {
		rc(nc, codec.V2411, 1007)
		return
	}
	rc(nc, f.Header.Version, 0)
}

// accounting opens a session for every client.
func (j *journal) accounting(nc net.Conn) {
	b, err := wire.Read(nc, 1<<20)
	if err != nil {
		return
	}
	f, _ := message.ParseFrame(b[2:])
	j.mu.Lock()
	j.requests = append(j.requests, f)
	j.mu.Unlock()
	answer, _ := message.EncodePersistent(f.Header.Version, message.AccountingRC, &message.PersistRC{})
	nc.Write(answer)
}

// credentials returns the credentials that the daemons received. It checks that
// munged issued each of its credentials for the scheduler's user, and for the
// body of the message that contains the credential.
func (j *journal) credentials(t *testing.T) []message.Credential {
	t.Helper()
	var all []message.Credential
	for i, f := range j.requests {
		all = append(all, f.Credential)
		if f.Credential.Plugin != message.PluginMunge || i >= len(j.asked) {
			continue
		}
		want := append(binary.BigEndian.AppendUint32(nil, 33), payload.Of(uint16(f.Header.Type), f.Body)...)
		if got := j.asked[i]; !bytes.HasSuffix(got, want) || binary.BigEndian.Uint32(got[8:]) != 64030 {
			t.Errorf("munged was asked %x for message %d", got, f.Header.Type)
		}
	}
	return all
}

// TestMunge checks that over TCP, each message with a local credential gets a
// new credential from munged. A request that has a token or uses a UNIX socket
// must not use munged.
func TestMunge(t *testing.T) {
	t.Parallel()
	counted := func(n int) message.Credential {
		return message.Credential{Plugin: message.PluginMunge, Text: fmt.Sprintf("MUNGE:%d:", n)}
	}
	local := model.Credential{}
	desc := &model.JobDesc{Script: strings.Repeat("#", 100_000)} // longer than a chunk of the hash
	tests := []struct {
		name    string
		network string
		cred    model.Credential
		ask     func(*client.Client, *client.Accounting, model.Credential)
		want    []message.Credential
	}{
		{"local, submits", "tcp", local, func(c *client.Client, _ *client.Accounting, cred model.Credential) {
			c.Submit(context.Background(), cred, desc)
		}, []message.Credential{counted(1), counted(2), counted(3)}}, // two probes come first
		{"token", "tcp", ann, func(c *client.Client, _ *client.Accounting, cred model.Credential) {
			c.Verify(context.Background(), cred)
		}, []message.Credential{token(ann), token(ann), token(ann)}},
		{"local, by a UNIX socket", "unix", local, func(c *client.Client, _ *client.Accounting, cred model.Credential) {
			c.Verify(context.Background(), cred)
		}, []message.Credential{{Plugin: message.PluginNone}, {Plugin: message.PluginNone}, {Plugin: message.PluginNone}}},
		{"local, to accounting", "tcp", local, func(_ *client.Client, a *client.Accounting, cred model.Credential) {
			a.Verify(context.Background(), cred)
		}, []message.Credential{counted(1)}},
		{"token, to accounting", "tcp", ann, func(_ *client.Client, a *client.Accounting, cred model.Credential) {
			a.Verify(context.Background(), cred)
		}, []message.Credential{token(ann)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			j := &journal{}
			cfg := client.Config{
				Controllers: []client.Address{{Name: "ctl", Network: tt.network, Address: sockettest.Serve(t, tt.network, j.controller)}},
				Accounting:  []client.Address{{Name: "dbd", Network: tt.network, Address: sockettest.Serve(t, tt.network, j.accounting)}},
				Munge:       &munge.Client{Socket: sockettest.Serve(t, "unix", j.munged)},
				MungeUID:    64030,
			}
			tt.ask(client.New(cfg), client.NewAccounting(cfg), tt.cred)
			j.mu.Lock()
			defer j.mu.Unlock()
			if diff := cmp.Diff(tt.want, j.credentials(t)); diff != "" {
				t.Error(diff)
			}
			if munged := tt.want[0].Plugin == message.PluginMunge; !munged && len(j.asked) > 0 {
				t.Errorf("munged was asked %d times", len(j.asked))
			}
		})
	}
}

// TestSack checks local credentials over TCP with auth/slurm. They must come
// from sack.socket, and each message must get a new one.
func TestSack(t *testing.T) {
	t.Parallel()
	j := &journal{}
	var asked [][]byte
	socket := sockettest.Serve(t, "unix", func(nc net.Conn) {
		request := make([]byte, 18+33)
		if _, err := io.ReadFull(nc, request); err != nil {
			return
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		asked = append(asked, request)
		text := fmt.Sprintf("a.b.%d\x00", len(asked))
		nc.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...))
	})
	cfg := client.Config{
		Controllers: []client.Address{{Name: "ctl", Network: "tcp", Address: sockettest.Serve(t, "tcp", j.controller)}},
		Accounting:  []client.Address{{Name: "dbd", Network: "tcp", Address: sockettest.Serve(t, "tcp", j.accounting)}},
		MungeUID:    64030,
		Sack: &sack.Client{Sockets: []string{socket}, Trusted: func(int, uint32) bool { return true },
			Dial: func(context.Context, int) (net.Conn, error) { return net.Dial("unix", socket) }},
	}
	client.New(cfg).Verify(t.Context(), model.Credential{})
	client.NewAccounting(cfg).Verify(t.Context(), model.Credential{})
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.requests) < 2 || len(asked) != len(j.requests) {
		t.Fatalf("%d credentials for %d requests", len(asked), len(j.requests))
	}
	for i, f := range j.requests {
		if want := fmt.Sprint("a.b.", i+1); f.Credential.Plugin != message.PluginSlurm || f.Credential.Text != want {
			t.Errorf("credential %+v, want %s", f.Credential, want)
		}
		if want := payload.Of(uint16(f.Header.Type), f.Body); !bytes.HasSuffix(asked[i], want) || binary.BigEndian.Uint32(asked[i][10:]) != 64030 {
			t.Errorf("sack.socket was asked %x for message %d", asked[i], f.Header.Type)
		}
	}
}

func token(cred model.Credential) message.Credential {
	return message.Credential{Plugin: message.PluginJWT, Token: cred.Token, ActAs: cred.ActAs}
}

// TestMungeIsDown checks that no daemon receives a message if munged is down.
// The error must name munged as the cause, so that no user believes that the
// job may have been submitted.
func TestMungeIsDown(t *testing.T) {
	t.Parallel()
	j := &journal{}
	cfg := client.Config{
		Controllers: []client.Address{{Name: "ctl", Network: "tcp", Address: sockettest.Serve(t, "tcp", j.controller)}},
		Accounting:  []client.Address{{Name: "dbd", Network: "tcp", Address: sockettest.Serve(t, "tcp", j.accounting)}},
		Munge:       &munge.Client{Socket: "/nowhere/munge.socket"},
	}
	_, submit := client.New(cfg).Submit(context.Background(), model.Credential{}, &model.JobDesc{})
	for name, err := range map[string]error{"submit": submit, "accounting": client.NewAccounting(cfg).Verify(context.Background(), model.Credential{})} {
		e, ok := err.(*errs.Error)
		if !ok || e.Kind != errs.Unavailable || e.Message != "munged can't be reached" || e.Hint == "" || e.Code != "" {
			t.Errorf("%s: got %#v", name, err)
		}
	}
	if j.mu.Lock(); len(j.requests) > 0 {
		t.Errorf("%d requests were sent", len(j.requests))
	}
	j.mu.Unlock()
}
