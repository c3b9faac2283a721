package keeper

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"schedrestd/api/scope"
	"schedrestd/auth/gatewaytoken"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
)

// vouches tells the parent which users' tokens the keeper has verified. The parent
// gives each of them a number, with which the dispatcher can have a process started
// that reads files as this user.
type vouches struct {
	mu      sync.Mutex   // serializes the questions to the parent; guards the fields below
	channel *ipc.Channel // nil: the parent asks for no vouches
	known   map[uint32]vouched
}

// vouched is the parent's answer about a user.
type vouched struct {
	client uint64
	asked  time.Time
}

// vouchInterval is the time after which the keeper vouches again for a user. The
// parent believes it for a minute.
const vouchInterval = 30 * time.Second

// maxVouched limits the map of answers. When it is reached, the keeper
// vouches again for all.
const maxVouched = 4096

// connect makes the descriptor fd the channel to the parent.
func (v *vouches) connect(fd int) error {
	channel, err := ipc.Open(fd, ipc.Keeper, ipc.Acceptor)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.channel, v.known = channel, map[uint32]vouched{}
	return err
}

// vouch returns the number that stands for a user, or 0 if no process may run as
// this user.
func (v *vouches) vouch(user *query.Membership, now time.Time) (client uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if known, ok := v.known[user.UID]; ok && now.Sub(known.asked) < vouchInterval {
		return known.client
	}
	if v.channel == nil {
		return 0
	}
	var random [8]byte
	rand.Read(random[:])
	answer, err := v.ask(&ipc.Vouch{Client: binary.LittleEndian.Uint64(random[:]), UID: user.UID, GID: user.GID, Groups: user.Groups})
	if err != nil { // the parent ends this process
		slog.Error("channel to the parent failed; no output is read", "error", err)
		v.channel.Close()
		v.channel = nil
		return 0
	}
	if len(v.known) >= maxVouched {
		clear(v.known)
	}
	if answer.Client != 0 { // a refusal may be temporary
		v.known[user.UID] = vouched{answer.Client, now}
	}
	return answer.Client
}

func (v *vouches) ask(question *ipc.Vouch) (*ipc.Vouched, error) {
	if err := v.channel.Send(question); err != nil {
		return nil, err
	}
	m, err := v.channel.Receive()
	switch answer := m.Message.(type) {
	case nil:
		return nil, err
	case *ipc.Vouched:
		return answer, nil
	default:
		return nil, ipc.Unhandled(answer)
	}
}

// vouchFor answers with a number that stands for the user of a token. The token must
// be genuine, and must permit reading.
func (k *keeper) vouchFor(c *client, q *query.VouchFor, now time.Time) *query.VouchedFor {
	answer := &query.VouchedFor{ID: q.ID, UID: ipc.NoID}
	ask := &query.AskMember{Groups: true}
	var uid *uint32 // of the token; nil: it has none
	var exchange *query.Exchange
	if q.Gateway {
		exchange = &query.Exchange{Signed: q.Signed, MAC: q.MAC, ActAs: q.ActAs, Check: true}
		exchanged, _ := k.exchange(exchange, c.UID, now, nil)
		if answer.Verdict = exchanged.Verdict; answer.Verdict != query.Genuine {
			return answer
		}
		t, err := gatewaytoken.ParseSigned(q.Signed)
		if err != nil || !t.Scopes.Permit(scope.ComputeRead) {
			answer.Verdict = query.NotForUser
			return answer
		}
		if ask.User, uid = t.User, t.UID; t.ActFor != "" {
			ask.User, ask.Group, uid = q.ActAs, t.ActFor, nil
		}
	} else if ask.User, answer.Verdict = k.userOf(q, now); answer.Verdict != query.Genuine {
		return answer
	}
	found := k.members.ask(c, ask)
	switch {
	case !found.Available:
		answer.Verdict = query.NoVerdict
	case found.UID == ipc.NoID || uid != nil && *uid != found.UID:
		answer.Verdict = query.NotForUser
	case ask.Group != "":
		exchange.Check = false
		exchanged, _ := k.exchange(exchange, c.UID, now, found)
		answer.Verdict = exchanged.Verdict
	}
	if answer.Verdict == query.Genuine {
		answer.UID, answer.Client = found.UID, k.vouches.vouch(found, now)
	}
	return answer
}

// userOf returns the user of one of Slurm's tokens. Only what the key has signed is
// parsed. The claim sun must name the user: Slurm prefers it to all others, and it has
// one meaning in all releases.
func (k *keeper) userOf(q *query.VouchFor, now time.Time) (user string, verdict query.Verdict) {
	key := k.token.Load()
	if key == nil {
		return "", query.NoVerdict
	}
	if verdict = key.verifyWith(key.secret, q.Signed, q.MAC); verdict != query.Genuine {
		return "", verdict
	}
	user, err := slurmUser(q.Signed, now)
	if err != nil {
		return "", query.Forged
	}
	if q.ActAs != "" && q.ActAs != user {
		return "", query.NotForUser // only a daemon decides whether the token acts for others
	}
	return user, query.Genuine
}

var errClaims = errors.New("not the claims of a token that is valid now and names its user")

// slurmUser returns the user of a signed token of Slurm that has not expired.
func slurmUser(signed []byte, now time.Time) (user string, err error) {
	_, encoded, _ := strings.Cut(string(signed), ".")
	text, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	if err != nil {
		return "", err
	}
	var claims map[string]json.RawMessage // a struct would also take members whose names differ in case
	if err := json.Unmarshal(text, &claims); err != nil {
		return "", err
	}
	var expires float64
	if json.Unmarshal(claims["sun"], &user) != nil || json.Unmarshal(claims["exp"], &expires) != nil || float64(now.Unix()) >= expires {
		return "", errClaims
	}
	if !gatewaytoken.IsUser(user) || strings.Trim(user, "0123456789") == "" { // the daemons take digits for a uid
		return "", errClaims
	}
	return user, nil
}
