package keeper

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"sync"

	"schedrestd/ipc"
)

// keeper is the running process: the channel to the parent and the keys.
type keeper struct {
	channel *ipc.Channel
	counts  counters

	mu    sync.Mutex
	pairs []*pair   // the newest last
	token *tokenKey // nil: none
}

// mostPairs is how many keys are kept: handshakes that began before a renewal still want the
// one before it.
const mostPairs = 3

func newKeeper(channel *ipc.Channel) *keeper { return &keeper{channel: channel} }

// run does what the parent says until it is gone, and gives the exit status.
func (k *keeper) run() int {
	k.counts.showWhenAsked()
	for {
		m, err := k.channel.Receive()
		switch {
		case errors.Is(err, io.EOF):
			return 0
		case err != nil:
			slog.Error("keeper lost its parent", "error", err)
			return 1
		}
		switch msg := m.Message.(type) {
		case *ipc.Ping:
			err = k.channel.Send(&ipc.Pong{Number: msg.Number})
		case *ipc.KeyFD:
			err = k.channel.Send(k.keep(msg, m.FDs))
		case *ipc.TokenKeyFD:
			err = k.channel.Send(k.keepTokenKey(msg, m.FDs[0]))
		case *ipc.Client:
			err = k.admit(m.FDs[0], msg.Number)
		default:
			err = ipc.Unheard(msg)
		}
		if err != nil {
			slog.Error("keeper lost its parent", "error", err)
			return 1
		}
	}
}

// keep reads a key and its certificates, and answers whether it is in use from now on. One that
// is not takes nothing from those before.
func (k *keeper) keep(m *ipc.KeyFD, fds []int) *ipc.Kept {
	var files []*os.File
	for _, fd := range fds {
		f := os.NewFile(uintptr(fd), "file")
		defer f.Close()
		files = append(files, f)
	}
	p, err := readPair(files[0], files[1])
	if err == nil {
		err = checkAuthorities(files[2])
	}
	if err != nil {
		return &ipc.Kept{Number: m.Number, Reason: ipc.Refuse(err.Error()).Reason}
	}
	p.number, p.tls12 = m.Number, m.TLS12
	p.warn()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pairs = append(k.pairs, p)
	k.pairs = k.pairs[max(0, len(k.pairs)-mostPairs):]
	return &ipc.Kept{Number: m.Number, OK: true}
}

// find is the kept key of that number, nil when there is none.
func (k *keeper) find(number uint32) *pair {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := len(k.pairs) - 1; i >= 0; i-- {
		if k.pairs[i].number == number {
			return k.pairs[i]
		}
	}
	return nil
}
