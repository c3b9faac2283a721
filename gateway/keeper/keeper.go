package keeper

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"sync/atomic"

	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// keeper holds the state of the process: the channel to the dispatcher, the
// counters and the keys.
type keeper struct {
	channel *ipc.Channel
	counts  counters

	pair  atomic.Pointer[pair]     // nil for none
	token atomic.Pointer[tokenKey] // nil for none
}

func newKeeper(channel *ipc.Channel) *keeper { return &keeper{channel: channel} }

// run handles messages from the parent and the dispatcher until the channel
// closes, and returns the exit status.
func (k *keeper) run() int {
	k.counts.logOnSignal()
	for {
		m, err := k.channel.Receive()
		switch {
		case errors.Is(err, io.EOF):
			return 0
		case err != nil:
			slog.Error("channel to the dispatcher failed", "error", err)
			return 1
		}
		switch msg := m.Message.(type) {
		case *ipc.Ping:
			err = k.channel.Send(&ipc.Pong{Number: msg.Number})
		case *ipc.SecretKeys:
			err = k.channel.Send(k.loadKeys(msg, m.FDs))
		case *work.WorkerChannel:
			err = k.admit(m.FDs[0], msg.Number)
		default:
			err = ipc.Unhandled(msg)
		}
		if err != nil {
			slog.Error("channel to the dispatcher failed", "error", err)
			return 1
		}
	}
}

// loadKeys loads new keys. If it can't use one of them, it keeps all old keys,
// and its answer names the key and the reason.
func (k *keeper) loadKeys(m *ipc.SecretKeys, fds []int) *ipc.KeysResult {
	var files []*os.File
	for _, fd := range fds {
		f := os.NewFile(uintptr(fd), "file")
		defer f.Close()
		files = append(files, f)
	}
	var p *pair
	var token *tokenKey
	var err error
	if m.TLS {
		if p, err = readPair(files[0], files[1]); err == nil {
			err = checkAuthorities(files[2])
		}
		if err != nil {
			return &ipc.KeysResult{Reason: ipc.TruncateReason(err.Error())}
		}
		p.tls12 = m.TLS12
	}
	if m.Token {
		if token, err = readTokenKey(files[3], m.Current); err != nil {
			return &ipc.KeysResult{Token: true, Reason: ipc.TruncateReason(err.Error())}
		}
	}
	if p != nil {
		p.warnValidity()
	}
	k.pair.Store(p)
	k.token.Store(token)
	return &ipc.KeysResult{OK: true}
}
