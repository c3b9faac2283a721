package keeper

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"schedrestd/auth/gatewaytoken"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
)

// A register is what the keeper accepts gateway tokens by. A token that a client
// creates may be valid for the lifetime; 0: it ends with the client's token.
type register struct {
	*gatewaytoken.Register
	cluster    string
	minUID     uint32   // lowest uid for which a token of another user acts
	schedUID   uint32   // uid of SchedUser
	privileged []string // names of root and SchedUser
	lifetime   time.Duration
	size       int // of the file, in bytes
}

// readRegister reads the register of gateway tokens from f. The dispatcher has
// read it before and found it right, so an error means that it has changed since,
// and the dispatcher will send it again. Meanwhile all gateway tokens are refused:
// a file that is shorter now may lack what revokes them.
func readRegister(m *work.TokenRegister, f *os.File) *register {
	defer f.Close()
	text, err := io.ReadAll(io.NewSectionReader(f, 0, int64(min(m.Size, gatewaytoken.MaxRegister))))
	var r *gatewaytoken.Register
	switch {
	case err != nil:
	case len(text) != int(m.Size):
		err = errShorter
	default:
		r, err = gatewaytoken.ParseRegister(text)
	}
	if err != nil {
		slog.Warn("register of gateway tokens can't be used; all of them are refused", "error", err)
		return nil
	}
	return &register{r, m.Cluster, m.MinUID, m.SchedUID, m.Privileged, time.Duration(m.Lifetime) * time.Second, len(text)}
}

// warnFull warns once if the register becomes half full.
func (r *register) warnFull(last *register) {
	const half = gatewaytoken.MaxRegister / 2
	if r != nil && r.size > half && (last == nil || last.size <= half) {
		slog.Warn("register of gateway tokens is more than half full", "bytes", r.size, "maximum", gatewaytoken.MaxRegister,
			"hint", "remove the lines without effect: schedctl token prune --register FILE")
	}
}

var errShorter = errors.New("the file has become shorter")

const (
	bearerLifetime = 30 * time.Second // a worker uses a bearer for a third of it
	leeway         = 5 * time.Second  // by which the clock of who has made a token may be ahead
)

// exchange answers with a token for the daemons, if the gateway token is genuine,
// has not expired, is not revoked and acts for the user that the question names.
// The signature is verified first, so only what this cluster's key has signed is
// parsed.
//
// If the resolver has to decide about that user, exchange returns a question for
// it. The caller then calls exchange again with the answer: the token may have been
// revoked meanwhile. The argument worker is the uid of the worker that asks, and
// member is nil in the first call.
func (k *keeper) exchange(e *query.Exchange, worker uint32, now time.Time, member *query.Membership) (*query.Exchanged, *query.AskMember) {
	answer := &query.Exchanged{ID: e.ID}
	key, r := k.token.Load(), k.register.Load()
	if key == nil || r == nil {
		return answer, nil
	}
	if answer.Verdict = key.verifyWith(key.gateway, e.Signed, e.MAC); answer.Verdict != query.Genuine {
		return answer, nil
	}
	t, err := gatewaytoken.ParseSigned(e.Signed)
	user := t.User
	switch {
	case err != nil || t.Cluster != r.cluster || !now.Before(t.Expires) || t.Issued.After(now.Add(leeway)):
		answer.Verdict = query.Forged
	case r.Revokes(t) || e.ActAs != "" && r.RevokesFor(t, e.ActAs):
		answer.Verdict = query.Revoked
	case t.ActFor != "" && !r.canBeMember(e.ActAs) || t.ActFor == "" && e.ActAs != "" && e.ActAs != t.User:
		answer.Verdict = query.NotForUser
	case e.Check:
		return answer, nil
	case t.ActFor == "":
	case member == nil:
		return answer, &query.AskMember{User: e.ActAs, Group: t.ActFor}
	case !member.Available:
		answer.Verdict = query.NoVerdict
	case !r.permits(member, worker):
		answer.Verdict = query.NotForUser
	default:
		user = e.ActAs
	}
	if answer.Verdict == query.Genuine && !k.stamps.Load() {
		answer.Bearer = key.bearer(user, t.Expires, now)
	}
	return answer, nil
}

// bearerClaim marks the tokens that the keeper makes in exchange for gateway tokens. The
// daemons ignore it. Without it, a worker could pass off what it gets for a gateway
// token as a token of the user, which may create and revoke gateway tokens.
const bearerClaim = "gateway"

// bearer returns a token for a user that the daemons accept. It expires no later
// than the gateway token.
func (k *tokenKey) bearer(user string, end, now time.Time) []byte {
	expires := now.Add(bearerLifetime)
	if end.Before(expires) {
		expires = end
	}
	// gatewaytoken.IsUser has accepted the name: JSON escapes none of its characters.
	return signHS256(k.secret, []byte(`{"alg":"HS256","typ":"JWT"}`),
		fmt.Appendf(nil, `{"exp":%d,"iat":%d,"`+bearerClaim+`":true,"sun":"%s"}`, expires.Unix(), now.Unix(), user))
}

// digests answers with digests of what the keeper decides by. That of the key is
// made of a derived key, and shows only whether two gateways have the same one.
func (k *keeper) digests(a *query.AskDigests) *query.Digests {
	d := &query.Digests{ID: a.ID, Key: "none", Register: k.register.Load().digest()}
	if key := k.token.Load(); key != nil {
		sum := sha256.Sum256(append([]byte("digest of the key: "), key.gateway...))
		d.Key = hex.EncodeToString(sum[:8])
	}
	return d
}

func (r *register) digest() string {
	if r == nil {
		return "none"
	}
	return r.Digest()
}
