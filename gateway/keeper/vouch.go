package keeper

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/api/scope"
	"schedrestd/auth/gatewaytoken"
	"schedrestd/auth/jose"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
)

// vouches tells the parent which users' tokens the keeper has verified. The parent
// gives each of them a number, with which the dispatcher can have a process started
// that runs as this user.
type vouches struct {
	mu      sync.Mutex   // serializes the questions to the parent
	channel *ipc.Channel // nil: the parent asks for no vouches
	answers chan *ipc.Vouched

	knownMu sync.Mutex // guards known
	known   map[vouchedFor]vouched
}

// vouchedFor is what a number of the parent is for. The parent takes no other number for
// this: a token that permits no reading of output must not give a worker a process that
// reads it.
type vouchedFor struct {
	uid        uint32
	credential bool // it is for a process that gets credentials; otherwise for one that reads output
}

// vouched is the parent's answer about a user.
type vouched struct {
	client, previous uint64
	asked            time.Time
}

// vouchInterval is the time after which the keeper vouches again for a user. The
// parent believes it for a minute.
const vouchInterval = 30 * time.Second

// vouchTime is how long the parent may take to answer.
const vouchTime = 10 * time.Second

// maxVouched limits the map of answers. When it is reached, the keeper
// vouches again for all.
const maxVouched = 4096

// connect makes the descriptor fd the channel to the parent. The function started is
// called with the channel to each process that gets the credentials of a user.
func (v *vouches) connect(fd int, started func(uid uint32, fd int)) error {
	channel, err := ipc.Open(fd, ipc.Keeper, ipc.Acceptor)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.channel, v.answers = channel, make(chan *ipc.Vouched, 1)
	v.knownMu.Lock()
	v.known = map[vouchedFor]vouched{} // an earlier listen may still use the other one
	v.knownMu.Unlock()
	go v.listen(channel, v.answers, started)
	return nil
}

// listen handles the messages of the parent.
func (v *vouches) listen(channel *ipc.Channel, answers chan<- *ipc.Vouched, started func(uid uint32, fd int)) {
	defer close(answers)
	defer channel.Close()
	for {
		m, err := channel.Receive()
		switch m2 := m.Message.(type) {
		case nil:
		case *ipc.Vouched:
			answers <- m2 // to one question at a time
		case *ipc.KeeperChannel:
			if uid, ok := v.userOf(m2.Client); ok {
				started(uid, m.FDs[0])
			} else {
				unix.Close(m.FDs[0])
			}
		default:
			err = ipc.Unhandled(m2)
		}
		if err != nil {
			return
		}
	}
}

// userOf returns the uid of the user for whom a number stands.
func (v *vouches) userOf(client uint64) (uid uint32, ok bool) {
	v.knownMu.Lock()
	defer v.knownMu.Unlock()
	for key, known := range v.known {
		if key.credential && client != 0 && (client == known.client || client == known.previous) {
			return key.uid, true
		}
	}
	return 0, false
}

// vouch returns the number that stands for a user, for a process that gets credentials
// or for one that reads output. It returns 0 if no process may run as this user.
func (v *vouches) vouch(user *query.Membership, credential bool, now time.Time) (client uint64) {
	key := vouchedFor{user.UID, credential}
	known, fresh := v.lookUp(key, now)
	if fresh { // the parent may be slow to answer about another user
		return known.client
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if known, fresh = v.lookUp(key, now); fresh {
		return known.client
	}
	if v.channel == nil {
		return 0
	}
	var random [8]byte
	rand.Read(random[:])
	random[0] &^= 1
	if credential { // see ipc.Vouch
		random[0] |= 1
	}
	answer, err := v.ask(&ipc.Vouch{Client: binary.LittleEndian.Uint64(random[:]), UID: user.UID, GID: user.GID, Groups: user.Groups})
	if err != nil { // the parent ends this process
		slog.Error("channel to the parent failed; no process of a user starts", "error", err)
		v.channel.Close()
		v.channel = nil
		return 0
	}
	v.knownMu.Lock()
	defer v.knownMu.Unlock()
	if len(v.known) >= maxVouched {
		clear(v.known)
	}
	if answer.Client != 0 { // a refusal may be temporary
		v.known[key] = vouched{answer.Client, known.client, now}
	}
	return answer.Client
}

// lookUp returns the last answer about a user, and whether it is still used.
func (v *vouches) lookUp(key vouchedFor, now time.Time) (known vouched, fresh bool) {
	v.knownMu.Lock()
	defer v.knownMu.Unlock()
	known, ok := v.known[key]
	return known, ok && now.Sub(known.asked) < vouchInterval
}

func (v *vouches) ask(question *ipc.Vouch) (*ipc.Vouched, error) {
	if err := v.channel.Send(question); err != nil {
		return nil, err
	}
	select {
	case answer, ok := <-v.answers:
		if ok {
			return answer, nil
		}
	case <-time.After(vouchTime): // a later answer would be taken for that of the next question
	}
	return nil, io.EOF
}

// vouchFor answers with a number that stands for the user of a token. The token must
// be genuine, and must permit reading.
func (k *keeper) vouchFor(c *client, q *query.VouchFor, now time.Time) *query.VouchedFor {
	answer := &query.VouchedFor{ID: q.ID, UID: ipc.NoID}
	var user *query.Membership
	if q.Gateway {
		user, _, answer.Verdict = k.gatewayUser(c, &query.Exchange{Signed: q.Signed, MAC: q.MAC, ActAs: q.ActAs}, now,
			func(s scope.Set) bool { return s.Permit(scope.ComputeRead) })
	} else {
		var name string
		if name, answer.Verdict = k.tokenUserOf(q, now); answer.Verdict == query.Genuine {
			user = k.members.ask(c, &query.AskMember{User: name, Groups: true})
			switch {
			case !user.Available:
				answer.Verdict = query.NoVerdict
			case user.UID == ipc.NoID:
				answer.Verdict = query.NotForUser
			}
		}
	}
	if answer.Verdict == query.NotInScope {
		answer.Verdict = query.NotForUser
	}
	if answer.Verdict == query.Genuine {
		answer.UID, answer.Client = user.UID, k.vouches.vouch(user, false, now)
	}
	return answer
}

// tokenUserOf returns the user of a token that is no gateway token. Only what a key has signed
// is parsed.
func (k *keeper) tokenUserOf(q *query.VouchFor, now time.Time) (user string, verdict query.Verdict) {
	var p *provider
	if len(q.RSA) > 0 {
		if p = k.provider.Load(); !p.verifies(q.Signed, q.RSA) {
			return "", query.Outdated
		}
	} else if key := k.token.Load(); key == nil {
		return "", query.Outdated
	} else if verdict = key.verifyWith(key.secret, q.Signed, q.MAC); verdict != query.Genuine {
		return "", verdict
	}
	user, verdict = tokenUser(q.Signed, p, now)
	if verdict == query.Genuine && q.ActAs != "" && q.ActAs != user {
		return "", query.NotForUser // only a daemon decides whether the token acts for others
	}
	return user, verdict
}

// tokenUser returns the user of a signed token that is valid now, of a provider or, if p
// is nil, of Slurm. The first of the claims that it has must contain a name.
func tokenUser(signed []byte, p *provider, now time.Time) (user string, verdict query.Verdict) {
	_, encoded, _ := strings.Cut(string(signed), ".")
	text, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	if err != nil {
		return "", query.Forged
	}
	o, err := jose.ParseObject(text)
	var expires float64
	if _, ok := o[bearerClaim]; ok || err != nil || json.Unmarshal(o["exp"], &expires) != nil || float64(now.Unix()) >= expires {
		return "", query.Forged
	}
	for _, date := range []string{"iat", "nbf"} {
		var begins float64
		if raw, ok := o[date]; ok && (json.Unmarshal(raw, &begins) != nil || begins > float64(now.Add(leeway).Unix())) {
			return "", query.Forged
		}
	}
	claims := []string{"sun"} // Slurm prefers it to all others, and it has one meaning in all releases
	if p != nil {
		if verdict := p.check(o); verdict != query.Genuine {
			return "", verdict
		}
		claims = p.claims
	}
	for _, claim := range claims {
		user, ok, err := o.Text(claim)
		switch {
		case !ok:
			continue
		case err != nil || !gatewaytoken.IsUser(user) || strings.Trim(user, "0123456789") == "": // the daemons take digits for a uid
			return "", query.NotForUser
		case namesAnother(o, user):
			return "", query.NotForUser
		}
		return user, query.Genuine
	}
	return "", query.NotForUser
}

// namesAnother reports whether the identity claims name another user. Daemons with
// use_jwt_client_ids take the token for that user, and others for the user of the claim
// sun. Workers refuse such a token, but a captured worker does not.
func namesAnother(o jose.Object, user string) bool {
	for _, claim := range []string{"uid", "gid", "id"} {
		if _, ok := o[claim]; !ok {
			return false // the daemons need all of them
		}
	}
	if o["id"][0] != '{' {
		return false // a claim of this name with another meaning
	}
	id, err := jose.ParseObject(o["id"])
	if err != nil {
		return true
	}
	name, ok, err := id.Text("name")
	return ok && (err != nil || name != user)
}
