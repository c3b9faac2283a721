package daemon

import (
	"os"
	"time"

	"schedrestd/auth"
	"schedrestd/rpc/server"
)

// ticketPurpose is the purpose from which the ticket key is derived.
const ticketPurpose = "schedctld records jobs at scheddbd"

// ticketUser is the user in tickets. The user need not exist.
const ticketUser = "schedctld"

// Ticket returns a token with which the controller records jobs at the
// accounting daemon over TCP. A token for root would work, too. But a program
// that listens on the accounting daemon's port while the daemon is down would
// receive it, and would have root's rights at the controller. The controller
// does not accept tickets.
func Ticket(key auth.Key, lifespan time.Duration) (string, error) {
	return auth.Create(key.Derive(ticketPurpose), ticketUser, lifespan, time.Now())
}

// WithTickets returns a Verify function for the accounting daemon. That
// function accepts a ticket as a token for the daemon's own user, and marks the
// identity, which may only record jobs and read counts.
func (k Keys) WithTickets() func(token, actAs string) (server.Identity, error) {
	if k.Key == nil {
		return k.Verify
	}
	verifier := auth.Verifier{Key: k.Key.Derive(ticketPurpose)}
	return func(token, actAs string) (server.Identity, error) {
		c, err := verifier.Verify(token)
		if err != nil || c.User != ticketUser || actAs != "" {
			return k.Verify(token, actAs)
		}
		uid, gid := uint32(os.Geteuid()), uint32(os.Getegid())
		return server.Identity{UID: uid, GID: gid, Name: c.User, Expires: c.Expires, Ticket: true}, nil
	}
}
