package privsep

import (
	"fmt"
	"time"

	"schedrestd/ipc"
	resolving "schedrestd/resolver"
	"schedrestd/security"
	services "schedrestd/service"
)

// playResolver is a resolver: the real one, or one that breaks the rules after Ready.
func playResolver(part string) int {
	switch part {
	case "good":
		return resolving.Main()
	case "names everyone": // tests have no accounts
		return services.Main(ipc.Resolver, func(ipc.Seal) (security.Sealed, error) { return security.Sealed{}, nil }, func(parent *ipc.Channel) services.Service { return everyone{parent} })
	case "crash":
		panic("no resolver here")
	case "mute":
		time.Sleep(time.Hour)
	}
	c, err := ipc.Open(ipc.ServiceChannelFD, ipc.Resolver, ipc.Parent)
	if err != nil {
		return 9
	}
	for range 2 {
		if _, err := c.Receive(); err != nil {
			return 9
		}
	}
	c.Send(new(ipc.Ready))
	time.Sleep(time.Hour)
	return 0
}

// everyone is a resolver for which each number has a name.
type everyone struct{ parent *ipc.Channel }

func (e everyone) Hear(m ipc.Received) (done bool, err error) {
	q, ok := m.Message.(*ipc.Who)
	if ok {
		err = e.parent.Send(nameOf(q))
	}
	return ok, err
}

func (everyone) Serve(c *services.Client) {
	c.Each(func(m ipc.Message) (done bool, err error) {
		q, ok := m.(*ipc.Who)
		if ok {
			c.Answer(nameOf(q))
		}
		return ok, nil
	})
}

func nameOf(q *ipc.Who) *ipc.Known {
	return &ipc.Known{ID: q.ID, Sure: true, Name: fmt.Sprint("user", q.Number)}
}
