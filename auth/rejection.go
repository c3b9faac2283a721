package auth

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Rejection describes the credential of a request that was answered with 401.
// It is used for the log and for penalties. No part of it is verified.
type Rejection struct {
	User string // user that the credential names; "" for no name or an invalid one
	Hash uint64 // hash of the name and the token that were sent, or of the reason why they could not be read

	dated *proof // proof of the token if it was rejected only because of its dates; otherwise nil
}

// NewRejection returns the Rejection of a rejected request. The field User
// contains only valid characters and has a limited length, so a client can't
// use it to forge a log line.
func NewRejection(r *http.Request, opt Options) Rejection {
	name, nameErr := userName(r.Header)
	token, tokenErr := userToken(r.Header)
	rejected := Rejection{Hash: hashOfParts(name, token, fmt.Sprint(nameErr, tokenErr))}
	if nameErr != nil || tokenErr != nil {
		return rejected
	}
	cred := Credential{ActAs: name}
	if token != "" {
		cred.Claims.User, rejected.dated = claimedUser(token, opt.Rules, timeOf(opt.Now))
	}
	rejected.User = cred.User()
	return rejected
}

// CertificateHash returns the Rejection.Hash of a rejected client certificate.
func CertificateHash(raw []byte) uint64 { return hashOfParts("certificate", string(raw)) }

// hashOfParts returns a hash that distinguishes credentials. 64 bits are
// enough: to gain anything, an attacker would need many guesses with the same
// hash.
func hashOfParts(parts ...string) uint64 {
	sum := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return binary.BigEndian.Uint64(sum.Sum(nil))
}

// claimedUser returns the user that a token names. If the token is invalid only
// because of its dates, claimedUser also returns the token's proof.
func claimedUser(token string, r Rules, now time.Time) (user string, dated *proof) {
	e := examination{token: token, rules: r, now: now}
	if e.run(formChecks) != nil {
		return "", nil
	}
	var err error
	if e.gateway {
		if e.readGatewayToken() != nil {
			return "", nil
		}
		err = e.claims.checkDates(now)
	} else {
		if e.readPayload() != nil || e.findUser() != nil {
			return "", nil
		}
		err = e.checkDates()
	}
	if _, ok := errors.AsType[outOfDateError](err); ok || err == nil && e.claims.checkExpiry(now) != nil {
		dated = e.proof(hashOf(token))
	}
	return e.claims.User, dated
}
