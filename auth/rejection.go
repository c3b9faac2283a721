package auth

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Rejection describes the credential of a request that was answered 401, for
// the log and for penalties. Nothing in it is verified.
type Rejection struct {
	User string // the user that the request claims to come from; "" unless it is a user name
	Hash uint64 // of the name and the token that were sent, or of why they could not be read

	dated *proof // of a token that is rejected for its dates only; nil otherwise
}

// NewRejection returns what a rejected request claims. The user's name has the
// characters and the length of a user name, so that it can't forge a log line.
func NewRejection(r *http.Request, opt Options) Rejection {
	name, unnamed := userName(r.Header)
	token, unread := userToken(r.Header)
	rejected := Rejection{Hash: hashOfParts(name, token, fmt.Sprint(unnamed, unread))}
	if unnamed != nil || unread != nil {
		return rejected
	}
	who := Credential{ActAs: name}
	if token != "" {
		who.Claims.User, rejected.dated = unverified(token, opt.UserClaimField, timeOf(opt.Now))
	}
	rejected.User = who.User()
	return rejected
}

// CertificateHash returns the Hash of a rejected client certificate.
func CertificateHash(raw []byte) uint64 { return hashOfParts("certificate", string(raw)) }

// hashOfParts returns a hash that distinguishes credentials. 64 bits are
// enough, since a guesser would have to find two guesses with the same hash.
func hashOfParts(parts ...string) uint64 {
	sum := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return binary.BigEndian.Uint64(sum.Sum(nil))
}

// unverified returns the user that a token names, and its proof when nothing
// but its dates speaks against it.
func unverified(token, field string, now time.Time) (user string, dated *proof) {
	p, err := parse(token)
	if err != nil {
		return "", nil
	}
	o, err := parseObject(p.payload)
	if err != nil {
		return "", nil
	}
	if user, err = o.user(field); err != nil {
		return "", nil
	}
	claims, err := o.read(field, now)
	if _, ok := errors.AsType[outOfDate](err); ok || err == nil && !now.Before(claims.Expires) {
		dated = p.proof(token)
	}
	return user, dated
}
