package daemon

import (
	"os"
	"time"

	"schedrestd/auth"
	"schedrestd/rpc/server"
)

// ticketPurpose is the purpose for which the key for tickets is derived from
// the cluster's key.
const ticketPurpose = "schedctld records jobs at scheddbd"

// ticketUser is the user name in tickets. A user of this name need not exist.
const ticketUser = "schedctld"

// Ticket returns a ticket: a token with which the controller sends job records
// to the accounting daemon over TCP. The controller itself does not accept
// tickets.
//
// A token for root would work, too. But while the accounting daemon is down,
// another program could listen on the daemon's port and receive the token. With
// root's token, this program would have root's rights at the controller.
func Ticket(key auth.Key, lifespan time.Duration) (string, error) {
	return auth.Create(key.Derive(ticketPurpose), ticketUser, lifespan, time.Now())
}

// WithTickets returns a function for the field Verify of the accounting
// daemon's server. That function also accepts tickets. It returns the daemon's
// own user as the identity of a client that sends a ticket. It marks this
// identity, so that the client may only record jobs and read counts.
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
