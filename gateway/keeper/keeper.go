package keeper

import (
	"errors"
	"log/slog"
	"os"
	"sync/atomic"

	"schedrestd/gateway/service"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// keeper holds the state of the process: the channel to the dispatcher, the
// counters and the keys.
type keeper struct {
	dispatcher *ipc.Channel
	counts     counters

	pair     atomic.Pointer[pair]       // nil for none
	token    atomic.Pointer[tokenKey]   // nil for none
	signing  atomic.Pointer[signingKey] // nil: the keeper signs no credentials
	provider atomic.Pointer[provider]   // nil for none

	register atomic.Pointer[register] // nil: gateway tokens are refused
	members  *members
	appender *appender
	vouches  vouches
	users    *users
	stamps   atomic.Bool // gateway tokens are not exchanged
}

func newKeeper(dispatcher *ipc.Channel) *keeper {
	return &keeper{dispatcher: dispatcher, members: newMembers(), users: newUsers(), appender: newAppender()}
}

// Handle handles a message from the parent or the dispatcher.
func (k *keeper) Handle(m ipc.Received) (handled bool, err error) {
	switch msg := m.Message.(type) {
	case *ipc.SecretKeys:
		return true, k.dispatcher.Send(k.loadKeys(msg, m.FDs))
	case *work.TokenRegister:
		f := os.NewFile(uintptr(m.FDs[0]), "register")
		moved := k.appender.isOther(f)
		r := readRegister(msg, f)
		r.warnFull(k.register.Swap(r))
		if moved {
			return true, ipc.IgnoreClosed(k.dispatcher.Send(new(work.RegisterMoved)))
		}
		return true, nil
	case *ipc.KeeperChannels:
		if k.members.link.Load() != nil { // the first ones are the parent's, these may be the dispatcher's
			return true, errSecondChannels
		}
		return true, errors.Join(k.vouches.connect(m.FDs[0], k.connectUser), k.members.connect(m.FDs[1]))
	case *work.NoCredential:
		if uid, ok := k.vouches.userOf(msg.Client); ok {
			k.users.refuse(uid, msg.Reason)
		}
		return true, nil
	case *work.NoTokenRegister:
		k.register.Store(nil)
		return true, nil
	}
	return false, nil
}

var errSecondChannels = errors.New("other channels to the parent and the resolver")

// connectUser makes the descriptor fd the channel to a process of a user.
func (k *keeper) connectUser(uid uint32, fd int) {
	if err := k.users.connect(uid, fd); err != nil {
		slog.Error("channel to a process of a user can't be used", "uid", uid, "error", err)
	}
}

// Serve answers the questions of one worker.
func (k *keeper) Serve(c *service.Client) { newClient(k, c).serve() }

// Counters returns the keeper's counters since its start.
func (k *keeper) Counters() []any { return k.counts.list() }

// Close does nothing, because each answer is complete before the next question
// is read.
func (*keeper) Close() {}

// loadKeys loads new keys. If it can't use one of them, it keeps all old keys,
// and its answer names the key and the reason.
func (k *keeper) loadKeys(m *ipc.SecretKeys, fds []int) *ipc.KeysResult {
	var files []*os.File
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "file")
		files = append(files, f)
		if i == 5 && m.Append {
			k.appender.use(f)
		} else {
			defer f.Close()
		}
	}
	var p *pair
	var token *tokenKey
	var signing *signingKey
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
		if token, err = readTokenKey(files[3], m.Current); err == nil {
			signing, err = readSigningKey(files[6])
		}
		if err != nil {
			return &ipc.KeysResult{Token: true, Reason: ipc.TruncateReason(err.Error())}
		}
	}
	if p != nil {
		p.warnValidity()
	}
	k.stamps.Store(m.Stamps) // before there is a key with which tokens could be exchanged
	k.signing.Store(signing)
	k.pair.Store(p)
	k.token.Store(token)
	k.provider.Store(readProvider(files[4], m.Provider))
	return &ipc.KeysResult{OK: true, Token: token != nil}
}
