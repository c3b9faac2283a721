package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
	"schedrestd/internal/socket/sockettest"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

const secret = "a token that must not be seen"

var ann = model.Credential{Token: secret}

// serve starts s on network and returns its address.
func serve(t testing.TB, network string, s *server.Server) client.Address {
	t.Helper()
	s.Log = slog.New(slog.DiscardHandler)
	if s.Verify == nil {
		s.Verify = func(token, actAs string) (server.Identity, error) {
			if token != secret {
				return server.Identity{}, errors.New("forged")
			}
			return server.Identity{UID: 100, Name: "ann"}, nil
		}
	}
	at := "127.0.0.1:0"
	if network == "unix" {
		at = filepath.Join(sockettest.Dir(t), "s")
	}
	ln, err := net.Listen(network, at)
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	wait.Go(func() { s.Serve(ln) })
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		s.Shutdown(ctx)
		wait.Wait()
	})
	return client.Address{Name: "ctl", Network: network, Address: ln.Addr().String()}
}

// controller returns a small controller with two nodes, a job and a partition.
func controller() *server.Server {
	ok := func(context.Context, *server.Request) (message.Type, message.Body, error) {
		return message.ResponseRC, &message.RC{}, nil
	}
	return &server.Server{Handlers: map[message.Type]server.Handler{
		message.RequestPing: ok,
		message.RequestNodeInfo: func(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
			var req message.NodeInfoRequest
			if err := r.Decode(&req); err != nil {
				return 0, nil, err
			}
			if req.LastUpdate == 50 {
				return message.ResponseRC, &message.RC{Code: fault.NoChange}, nil
			}
			return message.ResponseNodeInfo, &message.NodeInfo{LastUpdate: 50,
				Nodes: codec.Stream[model.Node]{List: []model.Node{{Name: "n1"}, {}, {Name: "n2"}}}}, nil
		},
		message.RequestNodeInfoSingle: func(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
			var req message.NodeInfoSingleRequest
			if err := r.Decode(&req); err != nil {
				return 0, nil, err
			}
			if req.NodeName != "n1" {
				return 0, nil, fault.Of(fault.InvalidNodeName, "")
			}
			return message.ResponseNodeInfo, &message.NodeInfo{LastUpdate: 50,
				Nodes: codec.Stream[model.Node]{List: []model.Node{{Name: "n1"}}}}, nil
		},
		message.RequestJobInfoSingle: func(context.Context, *server.Request) (message.Type, message.Body, error) {
			return message.ResponseJobInfo, &message.JobInfo{}, nil
		},
		message.RequestPartitionInfo: func(context.Context, *server.Request) (message.Type, message.Body, error) {
			return message.ResponsePartitionInfo, &message.PartitionInfo{LastUpdate: 7,
				Partitions: codec.Stream[model.Partition]{List: []model.Partition{{Name: "debug"}}}}, nil
		},
		message.RequestSubmitBatchJob: func(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
			var req message.SubmitRequest
			if err := r.Decode(&req); err != nil {
				return 0, nil, err
			}
			if req.Desc.Script == "" {
				e := errs.New(errs.Invalid, "nothing to run")
				e.Number = fault.NoScript
				return 0, nil, e
			}
			if req.Desc.Name == "root" {
				e := errs.New(errs.Invalid, "not a name for a job")
				e.Number = 1<<32 - 1 // the error number of a submit policy that fails
				return 0, nil, e
			}
			answer := &message.SubmitResponse{Submitted: model.Submitted{UserMessage: "hello " + req.Desc.Name.String()}}
			answer.StepID.JobID = 42
			return message.ResponseSubmitBatchJob, answer, nil
		},
		message.RequestKillJob: func(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
			var req message.KillJob
			if err := r.Decode(&req); err != nil {
				return 0, nil, err
			}
			if req.JobText != "42" || req.Signal != 9 {
				return 0, nil, fault.Of(fault.InvalidJobID, "")
			}
			return ok(context.Background(), r)
		},
		message.RequestAuthToken: func(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
			var req message.TokenRequest
			if err := r.Decode(&req); err != nil {
				return 0, nil, err
			}
			return message.ResponseAuthToken, &message.TokenResponse{Token: fmt.Sprintf("%s for %d", req.Username, req.Lifespan)}, nil
		},
	}}
}

func TestRequests(t *testing.T) {
	t.Parallel()
	for _, v := range []codec.Version{codec.V2205, codec.V2302, codec.V2411, codec.Newest} {
		t.Run(v.Release(), func(t *testing.T) {
			s := controller()
			s.Newest = v
			c := client.New(client.Config{Controllers: []client.Address{serve(t, "tcp", s)}})
			requests(t, c)
		})
	}
}

func requests(t *testing.T, c *client.Client) {
	ctx := context.Background()
	pings, err := c.Ping(ctx, ann)
	if err != nil || len(pings) != 1 || !pings[0].Responding || pings[0].Mode != "primary" || pings[0].Latency <= 0 {
		t.Errorf("Ping: %+v, %v", pings, err)
	}
	var names []string
	updated, err := c.Nodes(ctx, ann, model.Query{}, func(n *model.Node) error { names = append(names, n.Name); return nil })
	if diff := cmp.Diff([]string{"n1", "n2"}, names); err != nil || updated != 50 || diff != "" {
		t.Errorf("Nodes: %d, %v\n%s", updated, err, diff)
	}
	if _, err := c.Nodes(ctx, ann, model.Query{Since: 50}, nil); errs.KindOf(err) != errs.Unchanged {
		t.Errorf("Nodes, unchanged: %v", err)
	}
	stop := errors.New("stop")
	if _, err := c.Nodes(ctx, ann, model.Query{}, func(*model.Node) error { return stop }); err != stop {
		t.Errorf("Nodes, stopped: %v", err)
	}
	if n, _, err := c.Node(ctx, ann, "n1", model.Query{}); err != nil || n.Name != "n1" {
		t.Errorf("Node: %+v, %v", n, err)
	}
	for _, name := range []string{"n9", ""} {
		if _, _, err := c.Node(ctx, ann, name, model.Query{}); errs.KindOf(err) != errs.NotFound {
			t.Errorf("Node %q: %v", name, err)
		}
	}
	if _, err := c.Job(ctx, ann, 7, model.Query{}, nil); errs.KindOf(err) != errs.NotFound {
		t.Errorf("Job: %v", err)
	}
	if _, err := c.Partitions(ctx, ann, model.Query{}, func(p *model.Partition) error {
		if p.Name != "debug" {
			t.Errorf("partition %q", p.Name)
		}
		return nil
	}); err != nil {
		t.Errorf("Partitions: %v", err)
	}
	if _, err := c.Jobs(ctx, ann, model.Query{}, nil); errs.KindOf(err) != errs.Unsupported {
		t.Errorf("Jobs, which this controller does not know: %v", err)
	}
	job, err := c.Submit(ctx, ann, &model.JobDesc{Script: "#!/bin/sh\n", Name: "j"})
	if err != nil || job.StepID.JobID != 42 || job.UserMessage != "hello j" {
		t.Errorf("Submit: %+v, %v", job, err)
	}
	_, err = c.Submit(ctx, ann, &model.JobDesc{})
	if e, ok := errors.AsType[*errs.Error](err); !ok || e.Kind != errs.Invalid || e.Number != fault.NoScript || !strings.Contains(e.Message, "nothing to run") {
		t.Errorf("Submit, refused: %#v", err)
	}
	_, err = c.Submit(ctx, ann, &model.JobDesc{Script: "#!/bin/sh\n", Name: "root"})
	if e, ok := errors.AsType[*errs.Error](err); !ok || e.Kind != errs.Invalid || e.Number != fault.Unspecified || !strings.HasPrefix(e.Message, "the site's submit policy refuses: ") || !strings.Contains(e.Message, "not a name") {
		t.Errorf("Submit, refused by a policy: %#v", err)
	}
	if err := c.Kill(ctx, ann, "42", 9, 0); err != nil {
		t.Errorf("Kill: %v", err)
	}
	if err := c.Kill(ctx, ann, "43", 9, 0); errs.KindOf(err) != errs.NotFound {
		t.Errorf("Kill of none: %v", err)
	}
	if tok, err := c.Token(ctx, ann, "bob", 90*time.Second); err != nil || tok != "bob for 90" {
		t.Errorf("Token: %q, %v", tok, err)
	}
	if err := c.Verify(ctx, ann); err != nil {
		t.Errorf("Verify: %v", err)
	}
	forged := model.Credential{Token: "forged " + secret}
	if err := c.Verify(ctx, forged); errs.KindOf(err) != errs.Unauthenticated {
		t.Errorf("Verify, forged: %v", err)
	}
	if _, err := c.Ping(ctx, forged); errs.KindOf(err) != errs.Unauthenticated {
		t.Errorf("Ping, forged: %v", err)
	}
}

func TestLocalCredential(t *testing.T) {
	t.Parallel()
	tcp, unix := serve(t, "tcp", controller()), serve(t, "unix", controller())
	both := client.New(client.Config{Controllers: []client.Address{tcp, unix}})
	if err := both.Verify(context.Background(), model.Credential{}); err != nil {
		t.Errorf("with a UNIX socket: %v", err)
	}
	if pings, err := both.Ping(context.Background(), ann); err != nil || len(pings) != 1 {
		t.Errorf("two ways to one controller: %+v, %v", pings, err)
	}
	only := client.New(client.Config{Controllers: []client.Address{tcp}})
	if err := only.Verify(context.Background(), model.Credential{}); errs.KindOf(err) != errs.Unsupported {
		t.Errorf("without one: %v", err)
	}
}

func TestAccounting(t *testing.T) {
	t.Parallel()
	var got []model.Job
	for _, v := range []codec.Version{codec.V2205, codec.V2411, codec.Newest} {
		address := serve(t, "tcp", &server.Server{Newest: v, Persistent: map[message.Type]server.Handler{
			message.AccountingGetStats: func(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
				return message.AccountingGotStats, &message.AccountingStats{AccountingStats: model.AccountingStats{TimeStart: 99}}, nil
			},
			message.AccountingRecordJobs: func(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
				var req message.RecordJobs
				err := r.Decode(&req)
				got = req.Jobs
				return message.AccountingRC, &message.PersistRC{}, err
			},
		}})
		sessions := 0
		c := client.NewAccounting(client.Config{Accounting: []client.Address{address}, Cluster: "c1",
			Dial: func(_ context.Context, a client.Address) (net.Conn, error) {
				sessions++
				return net.Dial(a.Network, a.Address)
			}})
		ctx := context.Background()
		for range 2 {
			sessions = 0
			stats, pings, err := c.Stats(ctx, ann)
			if err != nil || stats.TimeStart != 99 || len(pings) != 1 || !pings[0].Responding || pings[0].Latency <= 0 {
				t.Errorf("%d: stats %+v, %+v, %v", v, stats, pings, err)
			}
		}
		if sessions != 1 {
			t.Errorf("%d: %d sessions for statistics and ping, once the version is known", v, sessions)
		}
		pings, err := c.Ping(ctx, ann)
		if err != nil || len(pings) != 1 || !pings[0].Responding || pings[0].Latency <= 0 {
			t.Errorf("%d: ping %+v, %v", v, pings, err)
		}
		if err := c.Verify(ctx, ann); err != nil {
			t.Errorf("%d: verify: %v", v, err)
		}
		if err := c.Verify(ctx, model.Credential{Token: "forged"}); errs.KindOf(err) != errs.Unauthenticated {
			t.Errorf("%d: verify, forged: %v", v, err)
		}
		err = c.RecordJobs(ctx, ann, []model.Job{{Name: "a", Detailed: true}})
		if v == codec.Newest && (err != nil || len(got) != 1 || got[0].Name != "a") || v != codec.Newest && errs.KindOf(err) != errs.Unsupported {
			t.Errorf("%d: record: %+v, %v", v, got, err)
		}
	}
	none := client.NewAccounting(client.Config{})
	if _, _, err := none.Stats(context.Background(), ann); errs.KindOf(err) != errs.Unsupported {
		t.Errorf("without an accounting daemon: %v", err)
	}
}

func TestCredentialIsNotPrinted(t *testing.T) {
	t.Parallel()
	cred := struct{ C model.Credential }{ann}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(verb, cred); strings.Contains(text, secret) {
			t.Errorf("%s: %s", verb, text)
		}
	}
}

func BenchmarkPing(b *testing.B) {
	for _, network := range []string{"tcp", "unix"} {
		b.Run(network, func(b *testing.B) {
			c := client.New(client.Config{Controllers: []client.Address{serve(b, network, controller())}})
			for b.Loop() {
				if err := c.Verify(context.Background(), ann); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
