// Package credential implements the process that gets the credentials of one
// user's messages to Slurm's daemons. It runs as this user, so munged, or a socket
// of auth/slurm, confirms that the messages are the user's.
//
// Only the keeper asks it, on a channel that the parent makes. The keeper has
// verified a token of the user, and has seen the whole message: it asks only for
// messages of the types that the token permits, and for each credential sends the
// hash that the credential is to contain. So neither a captured worker, which has the
// message and gets the credential, nor a captured dispatcher, which has the process
// started, can get one for a message that the token does not permit.
//
// In its sandbox the process can open no file, start no program, and connect only to
// UNIX sockets.
package credential

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"schedrestd/become"
	"schedrestd/gateway/service"
	"schedrestd/internal/errs"
	"schedrestd/internal/fdpass/unixconn"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
	"schedrestd/rpc/munge"
	"schedrestd/rpc/sack"
	"schedrestd/security/sandbox"
	"schedrestd/security/self"
)

// Rename sets the name of the process. It must be called from an init function.
func Rename() { self.Rename("schedrestd-cred") }

// Main runs the process and returns its exit status.
func Main() int {
	return service.Main(ipc.Credential, confine, func(*ipc.Channel) service.Service {
		return newIssuer(func() { os.Exit(0) }, restTime) // the sandbox kills a process that closes its channel
	})
}

func confine(setup ipc.ServiceSetup) (sandbox.Layers, error) {
	s := setup.Sandbox
	return sandbox.Close(sandbox.Options{Kind: sandbox.Credential, Audit: s&ipc.SandboxAudit != 0}, s&ipc.SandboxRequire != 0)
}

const (
	// After restTime without a question the process exits. The keeper has another one
	// started when it is needed.
	restTime = time.Minute

	// maxTTL is the longest lifetime of a credential. A captured worker can keep what it
	// has got, and use each credential once, until its end.
	maxTTL = time.Minute

	// answerTime limits the time for a credential. It is a little less than the keeper
	// waits.
	answerTime = 4 * time.Second
)

// encoder gets credentials (munge.Client and sack.Client).
type encoder interface {
	Encode(ctx context.Context, payload []byte, uid uint32) (string, error)
}

// issuer holds the state of the process.
type issuer struct {
	exit func()
	rest *time.Timer // calls exit

	connected bool // there is a channel to the keeper

	uid      uint32        // of the daemons
	encoders [2]encoder    // for the controller, and for the accounting daemon
	ready    chan struct{} // closed when the fields above are set

	issued, refused atomic.Uint64
}

// newIssuer returns an issuer that calls exit after a rest, or when the keeper is gone.
func newIssuer(exit func(), rest time.Duration) *issuer {
	return &issuer{exit: exit, rest: time.AfterFunc(rest, exit), ready: make(chan struct{})}
}

// Close does nothing, because the process holds nothing.
func (*issuer) Close() {}

// Counters returns the number of credentials since the start, and of questions without
// an answer.
func (i *issuer) Counters() []any {
	return []any{"credentials", slog.GroupValue(slog.Uint64("issued", i.issued.Load()), slog.Uint64("refused", i.refused.Load()))}
}

// Serve serves no worker: the dispatcher introduces none.
func (*issuer) Serve(*service.Client) {}

// Handle handles the channel to the keeper, which the parent sends, and the settings,
// which the dispatcher sends.
func (i *issuer) Handle(m ipc.Received) (handled bool, err error) {
	switch msg := m.Message.(type) {
	case *ipc.KeeperChannel:
		if i.connected { // the first one is the parent's, this may be the dispatcher's
			return true, errSecondChannel
		}
		i.connected = true
		keeper, err := ipc.Open(m.FDs[0], ipc.Credential, ipc.Keeper)
		if err == nil {
			go i.listen(keeper)
		}
		return true, err
	case *work.CredentialSetup:
		i.configure(msg.Credentials)
		return true, nil
	}
	return false, nil
}

var errSecondChannel = errors.New("another channel to a keeper")

// configure sets who issues credentials.
func (i *issuer) configure(s work.Credentials) {
	if i.encoders[0] != nil {
		return
	}
	defer close(i.ready)
	i.uid = s.SchedUID
	if len(s.Sack) > 0 {
		c := &sack.Client{Sockets: s.Sack,
			Dial:    func(ctx context.Context, n int) (net.Conn, error) { return unixconn.Dial(ctx, s.Sack[n]) },
			Trusted: func(n int, uid uint32) bool { return uid == 0 || uid == s.SchedUID || ownsDirectory(uid, s.Sack[n]) }}
		i.encoders = [2]encoder{c, c}
		return
	}
	client := func(socket string) encoder {
		return &munge.Client{Socket: socket, TTL: min(maxTTL, cmp.Or(s.Munge.TTL, maxTTL))}
	}
	i.encoders = [2]encoder{client(s.Munge.Socket), client(s.Munge.Socket)}
	if s.Munge.Accounting != "" {
		i.encoders[1] = client(s.Munge.Accounting)
	}
}

// ownsDirectory reports whether the directory of a socket belongs to a user.
func ownsDirectory(uid uint32, socket string) bool {
	info, err := os.Stat(filepath.Dir(socket))
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && uid == st.Uid && uid != become.Overflow
}

// listen answers the keeper. The process is of no use without it.
func (i *issuer) listen(keeper *ipc.Channel) {
	defer i.exit()
	defer keeper.Close()
	for {
		m, err := keeper.Receive()
		switch q := m.Message.(type) {
		case nil:
		case *query.GetCredential:
			i.rest.Reset(restTime)
			go func() { _ = keeper.Send(i.answer(q)) }() // the keeper limits the questions
		default:
			err = ipc.Unhandled(q)
		}
		if err != nil {
			return
		}
	}
}

// answer gets a credential.
func (i *issuer) answer(q *query.GetCredential) *query.GotCredential {
	answer := &query.GotCredential{ID: q.ID}
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	select {
	case <-i.ready:
	case <-ctx.Done():
		answer.Reason = "the dispatcher has sent no settings"
		return answer
	}
	n := 0
	if q.Accounting {
		n = 1
	}
	text, err := i.encoders[n].Encode(ctx, q.Payload[:], i.uid)
	if err != nil {
		i.refused.Add(1)
		answer.Reason = ipc.TruncateReason(err.Error())
		if hint := errs.HintOf(err); hint != "" {
			answer.Reason = ipc.TruncateReason(err.Error() + "; " + hint)
		}
		return answer
	}
	i.issued.Add(1)
	answer.Credential = []byte(text)
	return answer
}
