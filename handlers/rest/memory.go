package rest

import (
	"schedrestd/handlers/feed"
	"schedrestd/model"
)

// Memory limits the memory that stored answers and large bodies of a credential
// occupy. It returns a reservation of no bytes.
type Memory = func(model.Credential) feed.Reservation

// unlimited is a reservation without a limit.
type unlimited struct{ size int }

// noLimit is a Memory without a limit.
func noLimit(model.Credential) feed.Reservation { return new(unlimited) }

func (u *unlimited) Grow(n int) bool { u.size += n; return true }

func (u *unlimited) Shrink(n int) { u.size -= max(0, min(n, u.size)) }

func (u *unlimited) Size() int { return u.size }

// reserve returns a reservation of no bytes for the client.
func (c *Call) reserve() feed.Reservation { return c.server.Memory(c.cred) }
