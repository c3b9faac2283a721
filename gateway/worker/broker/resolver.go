package broker

import (
	"context"
	"errors"
	"time"

	"schedrestd/internal/limit"
	"schedrestd/internal/semaphore"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// The type resolver stands for the resolver process, which knows the names and
// ids of users and groups. Every method of a nil resolver fails.
type resolver struct {
	service *service
	places  *semaphore.Semaphore[string] // a place is a pending look-up
}

// lookupTimeout is how long a worker waits for the resolver. It is longer than
// the time that the resolver waits for a directory service.
const lookupTimeout = 10 * time.Second

var errNoUserDatabase = errors.New("the user database is unavailable")

func newResolver() *resolver {
	return &resolver{service: newService(ipc.Resolver), places: semaphore.New[string](limit.Lookups)}
}

// name returns the name of a user or group, or "" if it has none.
func (r *resolver) name(group bool, number uint32) (string, error) {
	result, err := r.lookup(context.Background(), work.Lookup{Group: group, Number: number}, "")
	if err != nil {
		return "", err
	}
	return result.Name, nil
}

// id returns the id of the user or group with this name. If no user or group
// has this name, it returns ipc.NoID.
func (r *resolver) id(ctx context.Context, group bool, name, turn string) (uint32, error) {
	result, err := r.lookup(ctx, work.Lookup{Group: group, Name: name}, turn)
	if err != nil {
		return 0, err
	}
	return result.Number, nil
}

// lookup asks the resolver about a user or group, and waits for the answer.
// Look-ups without a turn come after the first one of each turn.
func (r *resolver) lookup(ctx context.Context, q work.Lookup, turn string) (*work.LookupResult, error) {
	if r == nil {
		return nil, errNoUserDatabase
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	place, err := r.places.Acquire(ctx, turn)
	if err != nil {
		return nil, err
	}
	defer place.Release()
	l, err := r.service.connected()
	if err != nil {
		return nil, err
	}
	m, err := l.ask(ctx, l.channel.TrySend, func(id uint64) ipc.Message {
		q.ID = id
		return &q
	})
	if err != nil {
		return nil, err
	}
	result, ok := m.(*work.LookupResult)
	if !ok || !result.Available {
		return nil, errNoUserDatabase
	}
	return result, nil
}
