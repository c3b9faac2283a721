package daemon

import (
	"os"
	"time"

	"schedrestd/auth"
	"schedrestd/rpc/server"
)

// tickets is the purpose of the key that tickets are signed with.
const tickets = "schedctld records jobs at scheddbd"

// ticketUser is whom a ticket names. No user of the machine needs to be called that.
const ticketUser = "schedctld"

// Ticket is a token by which the controller records jobs at the accounting daemon over TCP. A token
// of root's would do, too, and whoever listened on the accounting daemon's port while that is
// down would be given it: root at the controller. A ticket is worth nothing there.
func Ticket(key auth.Key, lifespan time.Duration) (string, error) {
	return auth.Create(key.For(tickets), ticketUser, lifespan, time.Now())
}

// WithTickets is Verify for the accounting daemon, who takes a ticket for a token of its
// own user.
func (k Keys) WithTickets() func(token, actAs string) (server.Identity, error) {
	if k.Key == nil {
		return k.Verify
	}
	judge := auth.Verifier{Key: k.Key.For(tickets)}
	return func(token, actAs string) (server.Identity, error) {
		c, err := judge.Verify(token)
		if err != nil || c.User != ticketUser || actAs != "" {
			return k.Verify(token, actAs)
		}
		return server.Identity{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), Name: c.User, Expires: c.Expires}, nil
	}
}
