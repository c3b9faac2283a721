package rest

import (
	"schedrestd/handlers/feed"
	"schedrestd/internal/limit"
	"schedrestd/internal/semaphore"
	"schedrestd/model"
)

// Memory limits the memory that stored answers and large bodies of a credential
// occupy. It returns a reservation of no bytes.
type Memory = func(model.Credential) feed.Reservation

// noLimit is a Memory without a limit.
func noLimit(model.Credential) feed.Reservation {
	return semaphore.New[struct{}](limit.NoMemoryLimit).Empty(struct{}{})
}

// reserve returns a reservation of no bytes for the client.
func (c *Call) reserve() feed.Reservation { return c.server.Memory(c.cred) }
