package keys

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"schedrestd/auth"
	"schedrestd/auth/gatewaytoken"
	"schedrestd/gateway/worker/broker"
	"schedrestd/internal/errs"
)

// gatewayTokens exchanges gateway tokens for tokens of the daemons, and learns
// which of those in use are revoked. The keeper decides about both.
type gatewayTokens struct {
	keeper *broker.Keeper
	watch  sync.Once // starts the goroutine that asks for revocations, with the first token

	mu      sync.Mutex // guards the fields below
	bearers map[useKey]bearer
	checks  int // how often all tokens in use were checked again
	used    map[useKey]*use
}

// A useKey identifies what a token is used for.
type useKey struct {
	token [sha256.Size]byte // digest of the token
	actAs string            // the user that the requests name; "" for none
}

// A bearer is a token of the daemons.
type bearer struct {
	token string
	until time.Time // when it is exchanged again
}

// A use is a token with which clients wait for changes, or follow them, as the same
// user.
type use struct {
	useKey
	signature auth.Signature
	ended     map[*func(auth.Answer)]struct{} // are called when the token is no longer accepted
}

const (
	// bearerUse is for how long a bearer is used. It is valid three times as long,
	// so a daemon may answer slowly.
	bearerUse = 10 * time.Second

	// maxBearers limits the map of bearers. An entry takes about 400 bytes.
	maxBearers = 4096

	// watchInterval is the time between two questions for revocations.
	watchInterval = 400 * time.Millisecond

	// memberInterval is the time between two questions whether the tokens that are in
	// use still act for the users that their requests name.
	memberInterval = 5 * time.Second

	// checkTime limits the time for checking all tokens in use again. A thousand
	// take the keeper far less.
	checkTime = 2 * time.Second
)

// answer decides about a gateway token, for auth.Authenticator.
func (g *gatewayTokens) answer(ctx context.Context, s auth.Signature, actAs string) auth.Answer {
	_, answer := g.exchange(ctx, s, actAs, time.Now())
	return answer
}

// exchange returns the daemons' token for a gateway token and the user that the
// request names.
func (g *gatewayTokens) exchange(ctx context.Context, s auth.Signature, actAs string, now time.Time) (string, auth.Answer) {
	g.watch.Do(func() { go g.followRegister() })
	key := keyOf(s, actAs)
	g.mu.Lock()
	known, ok := g.bearers[key]
	checks := g.checks
	g.mu.Unlock()
	if ok && now.Before(known.until) {
		return known.token, auth.Good
	}
	token, answer := g.keeper.Exchange(ctx, s, actAs)
	if answer == auth.Good {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.checks != checks {
			return token, answer // the token may have been revoked meanwhile
		}
		if g.bearers == nil || len(g.bearers) >= maxBearers {
			g.bearers = map[useKey]bearer{}
		}
		g.bearers[key] = bearer{token, now.Add(bearerUse)}
	}
	return token, answer
}

// keyOf returns the key of a token in the maps. The signature is part of it, so
// that only a token that the keeper has accepted is found.
func keyOf(s auth.Signature, actAs string) useKey {
	return useKey{sha256.Sum256(append([]byte(s.Signed+"."), s.Bytes...)), actAs}
}

// Bearer returns the token that the daemons get in place of a gateway token. The
// argument actAs is the user that the request names, or "". The error is
// errs.Unauthenticated if the token has been revoked or has expired, and
// errs.Denied if it does not act for this user.
func (k *Keys) Bearer(ctx context.Context, token, actAs string) (string, error) {
	s, err := splitToken(token)
	if err != nil {
		return "", err
	}
	bearer, answer := k.gateway.exchange(ctx, s, actAs, time.Now())
	switch answer {
	case auth.Good:
		return bearer, nil
	case auth.Bad, auth.Revoked:
		return "", errs.Wrap(errRevoked, errs.Unauthenticated, auth.Refused)
	case auth.NotForUser:
		return "", auth.NotActingFor("no longer a member of its group")
	}
	return "", errs.New(errs.Unavailable, "gateway tokens can't be verified at present")
}

// StampWith makes the keeper decide about each message to a daemon.
func (k *Keys) StampWith(b *broker.Broker) { k.stamper = b.Stamper(k.keeper) }

// Stamp returns the credential of a message to a daemon, with this type number and body,
// in the name of the user of a gateway token. The argument actAs is the user that the
// request names, or "". For errors see broker.Stamper.
func (k *Keys) Stamp(ctx context.Context, token, actAs string, number uint16, body []byte) (string, error) {
	s, err := splitToken(token)
	if err != nil {
		return "", err
	}
	k.gateway.watch.Do(func() { go k.gateway.followRegister() })
	return k.stamper.Stamp(ctx, s, actAs, number, body)
}

// splitToken splits a gateway token that package auth has accepted.
func splitToken(token string) (auth.Signature, error) {
	end := strings.LastIndexByte(token, '.')
	if !gatewaytoken.Is(token) || end < 0 {
		return auth.Signature{}, errs.New(errs.Internal, "not a gateway token")
	}
	signature, err := base64.RawURLEncoding.DecodeString(token[end+1:])
	return auth.Signature{Signed: token[:end], Bytes: signature}, err
}

// Watch calls ended, once, when the gateway token is no longer accepted (auth.Revoked),
// when it does not act for the user actAs that the request names (auth.NotForUser),
// or when the keeper can't verify tokens (auth.Unknown). The caller must call the
// function that Watch returns when it is no longer interested.
func (k *Keys) Watch(token, actAs string, ended func(auth.Answer)) (end func()) {
	s, err := splitToken(token)
	if err != nil {
		return func() {}
	}
	g, key := k.gateway, keyOf(s, actAs)
	g.mu.Lock()
	defer g.mu.Unlock()
	u := g.used[key]
	if u == nil {
		u = &use{key, s, map[*func(auth.Answer)]struct{}{}}
		if g.used == nil {
			g.used = map[useKey]*use{}
		}
		g.used[key] = u
	}
	u.ended[&ended] = struct{}{}
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if delete(u.ended, &ended); len(u.ended) == 0 && g.used[key] == u {
			delete(g.used, key)
		}
	}
}

// followRegister asks the keeper again and again whether it decides as before. If
// it does not, all tokens are checked again, and the requests with those that are
// now refused end.
func (g *gatewayTokens) followRegister() {
	go func() {
		for ; ; time.Sleep(memberInterval) {
			g.checkMembers()
		}
	}()
	last := ""
	for ; ; time.Sleep(watchInterval) {
		key, register, err := g.keeper.Digests(context.Background())
		if err != nil {
			continue // without a keeper, this worker is replaced
		}
		if now := key + " " + register; now != last {
			last = now
			if !g.checkAll(key != "none" && register != "none") {
				last = ""
			}
		}
	}
}

// checkAll forgets all bearers, and ends the use of the tokens that are refused.
// The argument decides says whether the keeper has what it needs to accept a token.
// The result is false if the keeper had no time for some of them.
func (g *gatewayTokens) checkAll(decides bool) (complete bool) {
	ctx, cancel := context.WithTimeout(context.Background(), checkTime)
	defer cancel()
	g.mu.Lock()
	g.bearers = nil
	g.checks++
	list := slices.Collect(maps.Values(g.used))
	g.mu.Unlock()
	complete = true
	for _, u := range list { // without the resolver, so that a slow directory service does not delay the end of others
		switch answer := g.keeper.Check(ctx, u.signature, u.actAs); {
		case answer == auth.Good:
		case answer == auth.Unknown && decides:
			complete = false
		case !decides:
			g.end(u, auth.Unknown)
		case answer == auth.NotForUser:
			g.end(u, answer)
		default:
			g.end(u, auth.Revoked)
		}
	}
	return complete
}

// checkMembers ends the use of tokens that act for the members of a group by users
// who are no longer members.
func (g *gatewayTokens) checkMembers() {
	g.mu.Lock()
	list := slices.Collect(maps.Values(g.used))
	g.mu.Unlock()
	for _, u := range list {
		if u.actAs == "" {
			continue
		}
		if _, answer := g.exchange(context.Background(), u.signature, u.actAs, time.Now()); answer == auth.NotForUser {
			g.end(u, answer)
		}
	}
}

// end ends the use of a token. The answer says why.
func (g *gatewayTokens) end(u *use, answer auth.Answer) {
	g.mu.Lock()
	list := slices.Collect(maps.Keys(u.ended))
	clear(u.ended)
	if g.used[u.useKey] == u {
		delete(g.used, u.useKey)
	}
	g.mu.Unlock()
	for _, ended := range list { // without the lock, because it may call what Watch has returned
		(*ended)(answer)
	}
}

var errRevoked = fmt.Errorf("the gateway token has been revoked, or has expired")

// Digests returns a line about what the keeper decides about gateway tokens by.
// Gateways with the same key and register have the same line.
func (k *Keys) Digests(ctx context.Context) string {
	key, register, err := k.keeper.Digests(ctx)
	if err != nil {
		return "gateway tokens: the keeper does not answer"
	}
	return fmt.Sprintf("gateway tokens: key %s, register %s", key, register)
}
