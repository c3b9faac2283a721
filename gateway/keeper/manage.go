package keeper

import (
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/api/scope"
	"schedrestd/auth/gatewaytoken"
	"schedrestd/auth/jose"
	"schedrestd/internal/limit"
	"schedrestd/internal/semaphore"
	"schedrestd/ipc/query"
)

// An appender adds lines to the register of gateway tokens. The process that decides
// who may change the register also writes it, so it needs no message to another one, and no
// worker passes on a permission that it could use again. The file is open for
// appending, and the sandbox prevents that this ends: even an attacker who controls
// the keeper can't undo a revocation.
type appender struct {
	pending *semaphore.Semaphore[*client] // a place is a question that waits

	mu   sync.Mutex // serializes changes; guards file
	file *os.File   // nil: the register can't be written

	moved atomic.Bool // the register in use is another file
	known unix.Stat_t // of the file to append to or, if there is none, of the first register; only the goroutine that handles the dispatcher's messages uses it
}

func newAppender() *appender {
	return &appender{pending: semaphore.New[*client](limit.RegisterChanges)}
}

// use makes a the appender to a file, or to none.
func (a *appender) use(f *os.File) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file != nil {
		a.file.Close()
	}
	a.file = f
	_ = unix.Fstat(int(f.Fd()), &a.known)
}

// isOther reports whether the register in use is another file than the one to append
// to, or, if that could not be opened, than it was then. Only the parent can open the
// new one, and does this for the next keeper.
func (a *appender) isOther(register *os.File) bool {
	var now unix.Stat_t
	if unix.Fstat(int(register.Fd()), &now) != nil {
		return false
	}
	if a.known.Ino == 0 {
		a.known = now
		slog.Warn("register of gateway tokens can't be written; clients can't create and revoke tokens",
			"hint", "the user who starts the gateway must be its owner and able to write it: see GATEWAY-TOKENS.md")
	}
	other := now.Dev != a.known.Dev || now.Ino != a.known.Ino || now.Uid != a.known.Uid || now.Mode != a.known.Mode
	a.moved.Store(other)
	return other
}

const (
	// effectTime is how long a change may take until the keeper decides by it. The
	// dispatcher looks at the file three times a second.
	effectTime = 10 * time.Second

	// revokeInterval is the time between two revocations of all tokens of a user. In
	// between, the user can revoke single ones, each of which takes one line.
	revokeInterval = time.Minute

	// countedTime is for how long a line about a token counts for its user
	// (limit.GatewayTokens), even if the token has ended. Otherwise a user could fill the
	// register with tokens of a second.
	countedTime = 24 * time.Hour

	defaultLifetime = 30 * 24 * time.Hour // of a new token
)

// manage answers a question about the tokens of a user, in the background: the file
// may be on a file system that hangs.
func (c *client) manage(q *query.ManageTokens) {
	place := c.keeper.appender.pending.Empty(c)
	if !place.Grow(1) {
		c.AnswerInTurn(&query.TokensManaged{ID: q.ID, Verdict: query.Genuine, Result: query.TooSoon})
		return
	}
	go func() {
		defer place.Release()
		c.Answer(c.keeper.manage(c, q, time.Now))
	}()
}

// A holder is the user whose tokens a question is about.
type holder struct {
	user    string
	self    *gatewaytoken.Token // the gateway token of the question; nil: it is one of Slurm's
	expires time.Time           // of the token of the question
}

// manage lists, revokes or creates gateway tokens. A gateway token manages only
// itself, so that none prolongs itself or has more scopes. A token of Slurm manages
// those of its user.
func (k *keeper) manage(c *client, q *query.ManageTokens, now func() time.Time) *query.TokensManaged {
	answer := &query.TokensManaged{ID: q.ID}
	h, verdict := k.holderOf(q, c.UID, now())
	if answer.Verdict = verdict; verdict != query.Genuine {
		return answer
	}
	answer.User = h.user
	switch q.Action {
	case query.ListTokens:
		answer.Tokens, answer.More = k.register.Load().list(h, int(q.Skip), now())
	case query.RevokeOne:
		answer.Result = k.revokeOne(h, q.Token)
	case query.RevokeOwn:
		answer.Result = k.revokeOwn(h, now)
	default:
		answer.Token, answer.Result = k.create(c, h, q, now)
	}
	return answer
}

// holderOf returns the user of the question's token, if it is genuine.
func (k *keeper) holderOf(q *query.ManageTokens, worker uint32, now time.Time) (h holder, v query.Verdict) {
	if k.register.Load() == nil {
		return h, query.NoVerdict
	}
	if !q.Gateway {
		h.user, v = k.tokenUserOf(&query.VouchFor{Signed: q.Signed, MAC: q.MAC, ActAs: q.ActAs}, now)
		h.expires = endOf(q.Signed, now)
		return h, v
	}
	exchanged, _ := k.exchange(&query.Exchange{Signed: q.Signed, MAC: q.MAC, ActAs: q.ActAs, Check: true}, worker, now, nil)
	if exchanged.Verdict != query.Genuine {
		return h, exchanged.Verdict
	}
	t, err := gatewaytoken.ParseSigned(q.Signed)
	if err != nil {
		return h, query.Forged
	}
	return holder{t.User, &t, t.Expires}, query.Genuine
}

// endOf returns the end of a signed token. A later one than any gateway token can have
// is that one's.
func endOf(signed []byte, now time.Time) time.Time {
	_, encoded, _ := strings.Cut(string(signed), ".")
	text, _ := base64.RawURLEncoding.DecodeString(encoded)
	o, _ := jose.ParseObject(text)
	var end float64
	if json.Unmarshal(o["exp"], &end) != nil {
		return now
	}
	return time.Unix(int64(min(end, float64(now.Add(gatewaytoken.MaxLifetime).Unix()))), 0)
}

// list returns some of the tokens that have not expired, beginning with the one after
// skip others. A token that the register does not have is in no list.
func (r *register) list(h holder, skip int, now time.Time) (list []query.ListedToken, more bool) {
	if r == nil {
		return nil, false
	}
	for _, c := range r.Created {
		switch {
		case c.User != h.user || h.self != nil && c.ID != h.self.ID || !now.Before(c.Until):
			continue
		case skip > 0:
			skip--
			continue
		case len(list) == query.MaxListed:
			return list, true
		}
		list = append(list, query.ListedToken{ID: c.ID, ActFor: c.ActFor, Scopes: c.Scopes, Label: c.Label,
			Issued: uint64(max(0, c.Issued.Unix())), Expires: uint64(c.Until.Unix()), Revoked: r.RevokesCreated(c)})
	}
	return list, false
}

// revokeOne revokes one token of the user.
func (k *keeper) revokeOne(h holder, id string) query.ManageResult {
	isIt := func(c gatewaytoken.Created) bool { return c.ID == id && c.User == h.user }
	switch {
	case h.self != nil && (id == "" || id == h.self.ID):
		id = h.self.ID
	case h.self != nil:
		return query.NotOfThisToken
	case !gatewaytoken.IsID(id) || !slices.ContainsFunc(k.register.Load().created(), isIt):
		return query.NoSuchToken
	}
	isRevoked := func(r *register) bool { return r.RevokesID(id) }
	result := k.change(k.roomForRevocation(h.user), isRevoked, func(*register) (string, query.ManageResult) {
		return gatewaytoken.RevokeToken(id), query.Managed
	})
	logIf(result, "gateway token revoked", "token", id, "user", h.user, "by_itself", h.self != nil)
	return result
}

// revokeOwn revokes all tokens of the user that were issued until now.
func (k *keeper) revokeOwn(h holder, now func() time.Time) query.ManageResult {
	if h.self != nil {
		return query.NotOfThisToken
	}
	asked := now()
	isRevoked := func(r *register) bool { return asked.Before(r.RevokedBefore(h.user)) }
	result := k.change(k.roomForRevocation(h.user), isRevoked, func(r *register) (string, query.ManageResult) {
		if asked.Sub(r.RevokedBefore(h.user)) < revokeInterval {
			return "", query.TooSoon
		}
		if _, _, n := r.LinesOf(h.user); n >= limit.RegisterRevocations.Share {
			return "", query.RegisterFull
		}
		return gatewaytoken.RevokeBefore(h.user, asked), query.Managed
	})
	logIf(result, "gateway tokens revoked", "user", h.user)
	return result
}

// fewRevocations limits the lines that a user adds to the room for revocations.
// Without this limit, two users could fill it, and no other user could revoke a
// stolen token.
const fewRevocations = 256

// roomForRevocation returns the size that the register may have after a revocation.
func (k *keeper) roomForRevocation(user string) int {
	if r := k.register.Load(); r != nil {
		if _, revoked, revokedAll := r.LinesOf(user); revoked+revokedAll >= fewRevocations {
			return gatewaytoken.MaxRegister - gatewaytoken.ForRevocations
		}
	}
	return gatewaytoken.MaxRegister - gatewaytoken.ForAdministrators
}

// logIf logs a change that was made. The worker has a part in the audit log, but none
// in this line.
func logIf(result query.ManageResult, message string, attrs ...any) {
	if result == query.Managed {
		slog.Info(message, attrs...)
	}
}

// create creates a token for the user. It ends with the token of the question, unless
// the administrator permits more: the controller may forbid the user longer ones.
func (k *keeper) create(c *client, h holder, q *query.ManageTokens, now func() time.Time) (token []byte, result query.ManageResult) {
	r, key := k.register.Load(), k.token.Load()
	if h.self != nil {
		return nil, query.NotOfThisToken
	}
	if !r.canBeMember(h.user) {
		return nil, query.NotForThisUser
	}
	found := k.members.ask(c, &query.AskMember{User: h.user})
	switch {
	case !found.Available || key == nil:
		return nil, query.RegisterClosed
	case !r.mayRun(found.UID, c.UID):
		return nil, query.NotForThisUser
	case !c.creations.Take(now(), 1):
		return nil, query.TooSoon
	}
	issued := now().UTC().Truncate(time.Second)
	t := gatewaytoken.Token{Cluster: r.cluster, User: h.user, UID: &found.UID, Scopes: scope.Set(q.Scopes), Issued: issued, ID: gatewaytoken.NewID(), Label: q.Label}
	life := time.Duration(q.Seconds) * time.Second
	if life == 0 {
		life = defaultLifetime
	}
	t.Expires = issued.Add(life)
	longest := h.expires.UTC()
	if permitted := issued.Add(r.lifetime); permitted.After(longest) {
		longest = permitted
	}
	if t.Expires.After(longest) {
		t.Expires = longest
	}
	recorded := func(r *register) bool {
		return slices.ContainsFunc(r.created(), func(c gatewaytoken.Created) bool { return c.ID == t.ID })
	}
	result = k.change(gatewaytoken.MaxRegister-gatewaytoken.ForRevocations, recorded, func(r *register) (string, query.ManageResult) {
		if r.Revokes(t) { // all tokens of this second
			t.Issued = t.Issued.Add(time.Second)
		}
		own := 0
		for _, c := range r.created() {
			if c.User == h.user && (now().Before(c.Until) || now().Sub(c.Issued) < countedTime) {
				own++
			}
		}
		switch {
		case r.Revokes(t):
			return "", query.TooSoon
		case own >= limit.GatewayTokens.Share:
			return "", query.TooManyTokens
		}
		if recorded, _, _ := r.LinesOf(h.user); recorded >= limit.RegisterTokens.Share {
			return "", query.RegisterFull
		}
		text, err := gatewaytoken.Sign(t, key.secret)
		if err != nil || t.Scopes&^scope.All != 0 {
			return "", query.NotWhatIsSigned
		}
		token = []byte(text)
		return t.Line(), query.Managed
	})
	if result != query.Managed {
		return nil, result
	}
	logIf(result, "gateway token created", "token", t.ID, "user", t.User, "scopes", t.Scopes.String(), "until", t.Expires.Format(time.RFC3339), "label", t.Label)
	return token, result
}

// change appends a line to the register, which may then have at most so many bytes,
// and returns when the keeper decides by it. So the line is not only on the disk: it
// is in the file that the gateway's dispatcher finds by its name. If the change has
// been made before, nothing is appended. The function line decides whether the
// change is made.
func (k *keeper) change(size int, done func(*register) bool, line func(*register) (string, query.ManageResult)) query.ManageResult {
	a := k.appender
	a.mu.Lock()
	defer a.mu.Unlock()
	r := k.register.Load()
	switch {
	case r == nil || a.file == nil && !done(r):
		return query.RegisterClosed
	case done(r):
		return query.Managed
	case a.moved.Load():
		return query.RegisterMoved
	}
	text, result := line(r)
	if result != query.Managed {
		return result
	}
	switch err := gatewaytoken.Append(a.file, text, size); {
	case err == gatewaytoken.ErrFull:
		return query.RegisterFull
	case err != nil:
		slog.Error("register of gateway tokens not written", "error", err)
		return query.RegisterClosed
	}
	for end := time.Now().Add(effectTime); time.Now().Before(end) && !a.moved.Load(); time.Sleep(20 * time.Millisecond) {
		if r := k.register.Load(); r != nil && done(r) {
			return query.Managed
		}
	}
	slog.Error("change of the register of gateway tokens has no effect: the file was replaced, or can't be read")
	return query.RegisterMoved
}

// created returns the tokens that the register records.
func (r *register) created() []gatewaytoken.Created {
	if r == nil {
		return nil
	}
	return r.Created
}
