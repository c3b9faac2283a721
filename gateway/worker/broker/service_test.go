package broker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"schedrestd/auth"
	"schedrestd/handlers/rest"
	"schedrestd/ipc"
)

// TestServiceGone checks a question to a service that is absent, or that exits
// before it answers. The question must fail without waiting for a time limit.
func TestServiceGone(t *testing.T) {
	signature := auth.Signature{Signed: "a.b", Bytes: make([]byte, 32)}
	for _, tt := range []struct {
		name string
		role ipc.Role
		make func() (*service, func() error)
	}{
		{"a change", ipc.Auditor, func() (*service, func() error) {
			a := newAuditor()
			return a.service, func() error {
				_, err := changes{a, true, false}.Intend(context.Background(), rest.Change{})
				return err
			}
		}},
		{"a change with a key", ipc.Auditor, func() (*service, func() error) {
			a := newAuditor()
			return a.service, func() error {
				_, err := changes{a, false, true}.Intend(context.Background(), rest.Change{Key: new(rest.KeyClaim)})
				return err
			}
		}},
		{"a handshake", ipc.Keeper, func() (*service, func() error) {
			k := NewKeeper()
			return k.service, func() error { _, err := k.Sign("", 1, []byte("handshake")); return err }
		}},
		{"a token", ipc.Keeper, func() (*service, func() error) {
			k := NewKeeper()
			return k.service, func() error {
				if k.Verify(context.Background(), signature) != auth.Unknown {
					return nil
				}
				return errGone // before the time limit, Unknown can only mean that the service is gone
			}
		}},
		{"a name", ipc.Resolver, func() (*service, func() error) {
			r := newResolver()
			return r.service, func() error { _, err := r.name(false, 1); return err }
		}},
	} {
		// The clock of the synctest bubble advances only when all goroutines
		// wait. So if it advances, the question has waited for a time limit.
		run := func(name string, f func(t *testing.T, service *service, ask func() error) error) {
			t.Run(tt.name+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					service, ask := tt.make()
					began := time.Now()
					if err := f(t, service, ask); !errors.Is(err, errGone) || time.Since(began) != 0 {
						t.Errorf("%v after %s", err, time.Since(began))
					}
				})
			})
		}
		connect := func(t *testing.T, service *service) *ipc.Channel {
			t.Helper()
			c, fd, err := ipc.Pair(tt.role, ipc.Worker)
			must(t, err)
			must(t, service.connect(fd))
			return c
		}
		run("absent", func(_ *testing.T, _ *service, ask func() error) error { return ask() })
		run("exited", func(t *testing.T, service *service, ask func() error) error {
			must(t, connect(t, service).Close())
			<-service.link.Load().closed
			return ask()
		})
		run("exits when asked", func(t *testing.T, service *service, ask func() error) error {
			c := connect(t, service)
			failed := make(chan error, 1)
			go func() { failed <- ask() }()
			_, err := c.Receive()
			must(t, err)
			must(t, c.Close())
			return <-failed
		})
	}
}
