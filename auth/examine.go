package auth

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"schedrestd/api/scope"
	"schedrestd/auth/gatewaytoken"
)

// An examination is the state of the checks of one token. Each check uses what
// the checks before it have found.
type examination struct {
	token string
	rules Rules
	now   time.Time

	parts
	header  object
	members object // of the payload
	claims  Claims
}

// A check is one step of an examination. All that verify or explain a token go
// through the same checks, so they agree about every token.
type check struct {
	name string
	run  func(*examination) error
}

// formChecks are the checks of a token's form, and claimChecks those of its
// payload. Between the two, the daemons verify the signature.
var (
	formChecks = []check{
		{"size", (*examination).checkSize},
		{"form", (*examination).split},
		{"header", (*examination).checkHeader},
	}
	claimChecks = []check{
		{"payload", (*examination).readPayload},
		{"dates", (*examination).checkDates},
		{"user", (*examination).findUser},
		{"provider", (*examination).checkProvider},
	}
	// Those of a gateway token's payload, which can be written in one way only.
	gatewayChecks = []check{
		{"payload", (*examination).readGatewayToken},
		{"dates", func(e *examination) error { return e.claims.checkDates(e.now) }},
	}
)

// claimChecks returns the checks of the payload.
func (e *examination) claimChecks() []check {
	if e.gateway {
		return gatewayChecks
	}
	return claimChecks
}

// readGatewayToken reads the payload of a gateway token.
func (e *examination) readGatewayToken() error {
	t, err := gatewaytoken.Parse(e.payload)
	if err != nil {
		return fmt.Errorf("gateway token: %w", err)
	}
	if t.Cluster != e.rules.Gateway {
		return errors.New("gateway token: of another cluster")
	}
	e.claims = Claims{User: t.User, UID: t.UID, IssuedAt: t.Issued, Expires: t.Expires, Algorithm: hs256,
		Withheld: scope.All &^ t.Scopes, Gateway: true, ID: t.ID, ActFor: t.ActFor}
	return nil
}

// run makes the given checks until one fails.
func (e *examination) run(checks []check) error {
	for _, c := range checks {
		if err := c.run(e); err != nil {
			return err
		}
	}
	return nil
}

func (e *examination) checkSize() error {
	if len(e.token) > maxToken {
		return errors.New("too long")
	}
	return nil
}

// split splits and decodes a token in the compact form of RFC 7515: header,
// payload and signature, each in base64url. Any other number of segments is
// refused. An encrypted token, for example, has five.
func (e *examination) split() error {
	if strings.Count(e.token, ".") != 2 {
		return errors.New("not three segments")
	}
	end := strings.LastIndexByte(e.token, '.')
	head, payload, _ := strings.Cut(e.token[:end], ".")
	raw, err := decode(head)
	if err != nil {
		return errors.New("header: not base64url")
	}
	if e.header, err = parseObject(raw); err != nil {
		return fmt.Errorf("header: %w", err)
	}
	e.signed = e.token[:end]
	if e.payload, err = decode(payload); err != nil {
		return errors.New("payload: not base64url")
	}
	if e.signature, err = decode(e.token[end+1:]); err != nil {
		return errors.New("signature: not base64url")
	}
	return nil
}

func (e *examination) readPayload() (err error) {
	if e.members, err = parseObject(e.payload); err != nil {
		return fmt.Errorf("payload: %w", err)
	}
	return nil
}

// checkDates compares the dates with the current time.
func (e *examination) checkDates() error {
	e.claims.Algorithm, e.claims.KeyID = e.alg, e.kid
	if err := e.members.readDates(&e.claims); err != nil {
		return err
	}
	return e.claims.checkDates(e.now)
}

func (e *examination) findUser() (err error) {
	e.claims.User, e.claims.UID, err = e.members.user(e.rules)
	return err
}
