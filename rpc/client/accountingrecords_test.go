package client_test

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
	"schedrestd/rpc/wire"
)

// listResponse returns an answer with a record for each name. It calls
// one(name) to create each record.
func listResponse[T any](names []string, one func(name string) T) message.ListResponse[T] {
	l := message.ListResponse[T]{Records: codec.Stream[T]{List: []T{}}}
	for _, name := range names {
		l.Records.List = append(l.Records.List, one(name))
	}
	return l
}

// accountingRecords returns an accounting daemon that has a record for every
// requested name.
func accountingRecords() *server.Server {
	return &server.Server{Persistent: map[message.Type]server.Handler{
		message.AccountingGetJobs: decoded(message.AccountingGotJobs, func(r *message.GetAccountingJobs) (message.Body, error) {
			if len(r.States) > 0 {
				return nil, fault.Of(fault.AccessDenied, "")
			}
			return &message.AccountingJobs{ListResponse: listResponse(r.Names, func(s string) model.AccountingJob {
				return model.AccountingJob{Name: s, Steps: []model.AccountingStep{{Name: "batch"}}}
			})}, nil
		}),
		message.AccountingGetAssocs: decoded(message.AccountingGotAssocs, func(r *message.GetAssociations) (message.Body, error) {
			return &message.Associations{ListResponse: listResponse(r.Users, func(s string) model.Association { return model.Association{User: s} })}, nil
		}),
		message.AccountingGetAccounts: decoded(message.AccountingGotAccounts, func(r *message.GetAccounts) (message.Body, error) {
			if r.Flags != model.AccountWithAssocs {
				return nil, errs.New(errs.Internal, "flags %d", r.Flags)
			}
			return &message.Accounts{ListResponse: listResponse(r.Assoc.Accounts, func(s string) model.Account { return model.Account{Name: s} })}, nil
		}),
		message.AccountingGetUsers: decoded(message.AccountingGotUsers, func(r *message.GetUsers) (message.Body, error) {
			return &message.Users{ListResponse: listResponse(r.Assoc.Users, func(s string) model.User { return model.User{Name: s} })}, nil
		}),
		message.AccountingGetQOS: decoded(message.AccountingGotQOS, func(r *message.GetQOS) (message.Body, error) {
			return &message.QOSList{ListResponse: listResponse(r.Names, func(s string) model.QOS { return model.QOS{Name: s} })}, nil
		}),
		message.AccountingGetClusters: decoded(message.AccountingGotClusters, func(r *message.GetClusters) (message.Body, error) {
			return &message.Clusters{ListResponse: listResponse(r.Names, func(s string) model.Cluster { return model.Cluster{Name: s} })}, nil
		}),
		message.AccountingGetTRES: decoded(message.AccountingGotTRES, func(r *message.GetTRES) (message.Body, error) {
			return &message.TRESList{ListResponse: listResponse(r.Types, func(s string) model.TRES { return model.TRES{Type: s} })}, nil
		}),
	}}
}

func TestAccountingRecords(t *testing.T) {
	t.Parallel()
	want := []string{"x", "y"}
	for v := codec.Oldest; v <= codec.Newest; v++ {
		s := accountingRecords()
		s.Newest = v
		a := client.NewAccounting(client.Config{Accounting: []client.Address{serve(t, "tcp", s)}})
		ctx := context.Background()
		var got []string
		tests := []struct {
			name string
			ask  func() error
		}{
			{"jobs", func() error {
				return client.Records(ctx, a, ann, model.AccountingJobFilter{Names: want}, func(j *model.AccountingJob) error {
					if len(j.Steps) != 1 || j.Steps[0].Name != "batch" {
						t.Errorf("steps %+v", j.Steps)
					}
					got = append(got, j.Name)
					return nil
				})
			}},
			{"associations", func() error {
				return client.Records(ctx, a, ann, model.AssocFilter{Users: want}, collect(&got, func(a *model.Association) string { return a.User }))
			}},
			{"accounts", func() error {
				return client.Records(ctx, a, ann, model.AccountFilter{Assoc: model.AssocFilter{Accounts: want}, Flags: model.AccountWithAssocs},
					collect(&got, func(a *model.Account) string { return a.Name }))
			}},
			{"users", func() error {
				return client.Records(ctx, a, ann, model.UserFilter{Assoc: model.AssocFilter{Users: want}}, collect(&got, func(u *model.User) string { return u.Name }))
			}},
			{"qos", func() error {
				return client.Records(ctx, a, ann, model.QOSFilter{Names: want}, collect(&got, func(q *model.QOS) string { return q.Name }))
			}},
			{"clusters", func() error {
				return client.Records(ctx, a, ann, model.ClusterFilter{Names: want}, collect(&got, func(c *model.Cluster) string { return c.Name }))
			}},
			{"tres", func() error {
				return client.Records(ctx, a, ann, model.TRESFilter{Types: want}, collect(&got, func(r *model.TRES) string { return r.Type }))
			}},
		}
		for _, tt := range tests {
			got = nil
			if err := tt.ask(); err != nil || !cmp.Equal(want, got) {
				t.Errorf("%s, %s: %q, %v", v.Release(), tt.name, got, err)
			}
		}
		if err := client.Records(ctx, a, ann, model.AccountingJobFilter{States: []string{"0"}}, (func(*model.AccountingJob) error)(nil)); errs.KindOf(err) != errs.Denied {
			t.Errorf("%s, jobs, denied: %v", v.Release(), err)
		}
		if err := client.Records(ctx, a, model.Credential{Token: "forged"}, model.TRESFilter{}, (func(*model.TRES) error)(nil)); errs.KindOf(err) != errs.Unauthenticated {
			t.Errorf("%s, tres, forged: %v", v.Release(), err)
		}
	}
}

// TestAccountingRecordsOnce checks an answer that turns out to be broken after
// a client has received some of its records. The client must not receive these
// records again.
func TestAccountingRecordsOnce(t *testing.T) {
	t.Parallel()
	stop := errors.New("stop")
	asked := 0
	// The tres function returns the address of a daemon that answers with two
	// records and an error number. The code argument is the error number, and
	// cut is the number of bytes that are missing at the end of the answer.
	tres := func(code uint32, cut int) client.Address {
		return replier(t, func(v codec.Version) []byte {
			asked++
			body := message.TRESList{ListResponse: listResponse([]string{"x", "y"}, func(s string) model.TRES { return model.TRES{Type: s} })}
			body.Code = code
			b, _ := message.EncodePersistent(v, message.AccountingGotTRES, &body)
			b = b[:len(b)-cut]
			b[3] -= byte(cut)
			return b
		})
	}
	tests := []struct {
		name     string
		code     uint32
		cut      int
		each     error
		kind     errs.Kind
		received int
	}{
		{name: "cut short", cut: 6, kind: errs.BadAnswer, received: 1},
		{name: "an error number after the records", code: fault.AccessDenied, kind: errs.Denied, received: 2},
		{name: "the receiver stops", each: stop, received: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			asked = 0
			primary, backup := tres(tt.code, tt.cut), tres(tt.code, tt.cut)
			backup.Name = "bak"
			a := client.NewAccounting(client.Config{Accounting: []client.Address{primary, backup}})
			received := 0
			err := client.Records(context.Background(), a, ann, model.TRESFilter{}, func(*model.TRES) error { received++; return tt.each })
			if tt.each != nil && err != tt.each || tt.each == nil && errs.KindOf(err) != tt.kind {
				t.Errorf("got %v", err)
			}
			if received != tt.received || asked != 1 {
				t.Errorf("%d records received, %d times asked", received, asked)
			}
		})
	}
}

// replier starts an accounting daemon and returns its address. The daemon
// answers each request in a session with the bytes that the function reply
// returns.
func replier(t *testing.T, reply func(v codec.Version) []byte) client.Address {
	return opener(t, func(nc net.Conn, v codec.Version) {
		b, _ := message.EncodePersistent(v, message.AccountingRC, &message.PersistRC{Info: uint16(v) << 8})
		nc.Write(b)
		if _, err := wire.Read(nc, 1<<20); err == nil {
			nc.Write(reply(v))
		}
	})
}

// TestJobPages checks that a daemon is asked for a page of jobs only if it has
// offered this, in every protocol and after a failover, also within a
// transaction. All others are asked for the whole list.
func TestJobPages(t *testing.T) {
	t.Parallel()
	want := model.AccountingJobPage{AccountingJobFilter: model.AccountingJobFilter{Names: []string{"x"}},
		After: model.AccountingJobKey{JobID: 7, Cluster: "c1", Run: 9}, Limit: 3}
	daemon := func(v codec.Version, greeting string) *server.Server {
		s := accountingRecords()
		s.Newest, s.Greeting = v, greeting
		s.Persistent[message.AccountingFini] = decoded(message.AccountingRC, func(*message.AccountingEnd) (message.Body, error) {
			return &message.PersistRC{Info: uint16(message.AccountingFini)}, nil
		})
		s.Persistent[message.AccountingGetJobPage] = decoded(message.AccountingGotJobs, func(r *message.GetAccountingJobPage) (message.Body, error) {
			if !cmp.Equal(want, r.AccountingJobPage) {
				return nil, errs.New(errs.Internal, "page %+v", r)
			}
			return &message.AccountingJobs{ListResponse: listResponse([]string{"page"}, func(s string) model.AccountingJob { return model.AccountingJob{Name: s} })}, nil
		})
		return s
	}
	for v := codec.Oldest; v <= codec.Newest; v++ {
		for _, tt := range []struct {
			greeting, want string
		}{
			{message.PagesOffered, "page"},
			{"", "x"},
			{"Success", "x"},
			{message.PagesOffered + " ", "x"},
		} {
			s := daemon(v, tt.greeting)
			address := serve(t, "tcp", s)
			a := client.NewAccounting(client.Config{Accounting: []client.Address{address}})
			for _, reused := range []bool{false, true} {
				var got []string
				each := collect(&got, func(j *model.AccountingJob) string { return j.Name })
				if err := client.Records(t.Context(), a, ann, want, each); err != nil || !cmp.Equal([]string{tt.want}, got) {
					t.Errorf("%s, %q, session reused %t: %q, %v; want %s", v.Release(), tt.greeting, reused, got, err, tt.want)
				}
			}
			var got []string
			err := a.Edit(t.Context(), ann, func(tx model.Editor) error {
				return tx.List(model.List(want, collect(&got, func(j *model.AccountingJob) string { return j.Name })))
			})
			if err != nil || !cmp.Equal([]string{tt.want}, got) {
				t.Errorf("%s, %q, transaction: %q, %v; want %s", v.Release(), tt.greeting, got, err, tt.want)
			}
		}
	}

	gone := serve(t, "tcp", daemon(codec.Newest, message.PagesOffered))
	gone.Name = "primary"
	backup := serve(t, "tcp", daemon(codec.V2411, ""))
	backup.Name = "backup"
	a := client.NewAccounting(client.Config{Accounting: []client.Address{gone, backup}, Dial: func(ctx context.Context, a client.Address) (net.Conn, error) {
		if a.Name == gone.Name {
			return nil, errors.New("gone")
		}
		return (&net.Dialer{}).DialContext(ctx, a.Network, a.Address)
	}})
	var got []string
	if err := client.Records(t.Context(), a, ann, want, collect(&got, func(j *model.AccountingJob) string { return j.Name })); err != nil || !cmp.Equal([]string{"x"}, got) {
		t.Errorf("backup: %q, %v", got, err)
	}
}

// TestRecordJobs checks that jobs are sent to a scheddbd that is older than this
// program, but not to a daemon that can't be a scheddbd.
func TestRecordJobs(t *testing.T) {
	t.Parallel()
	for v := codec.V2511; v <= codec.Newest; v++ {
		recorded := 0
		a := accountingOf(serve(t, "tcp", &server.Server{Newest: v, Persistent: map[message.Type]server.Handler{
			message.AccountingRecordJobs: decoded(message.AccountingRC, func(r *message.RecordJobs) (message.Body, error) {
				recorded += len(r.Jobs)
				return &message.PersistRC{}, nil
			}),
		}}))
		err := a.RecordJobs(t.Context(), ann, []model.Job{{Name: "a"}})
		if accepts := v >= codec.V2605; (err == nil) != accepts || (recorded == 1) != accepts {
			t.Errorf("protocol %d: %d jobs recorded, %v", v, recorded, err)
		}
	}
}

// TestRecordRuns checks that the runs of jobs arrive, and that a scheddbd that
// does not know them gets the jobs.
func TestRecordRuns(t *testing.T) {
	t.Parallel()
	job := model.Job{Name: "a", Run: model.JobRun{CancelledBy: model.Some[uint32](7), HasUsage: true, Status: 256, UserTime: 1, SystemTime: 2, MaxRSS: 3}}
	for _, older := range []bool{false, true} {
		var got []model.Job
		handlers := map[message.Type]server.Handler{
			message.AccountingRecordRuns: decoded(message.AccountingRC, func(r *message.RecordRuns) (message.Body, error) {
				got = r.Jobs
				return &message.PersistRC{}, nil
			}),
			message.AccountingRecordJobs: decoded(message.AccountingRC, func(r *message.RecordJobs) (message.Body, error) {
				got = r.Jobs
				return &message.PersistRC{}, nil
			}),
		}
		want := job.Run
		if older {
			delete(handlers, message.AccountingRecordRuns)
			want = model.JobRun{}
		}
		a := accountingOf(serve(t, "tcp", &server.Server{Persistent: handlers}))
		if err := a.RecordJobs(t.Context(), ann, []model.Job{job}); err != nil || len(got) != 1 || got[0].Name != "a" || got[0].Run != want {
			t.Errorf("older daemon %t: %v, %+v", older, err, got)
		}
	}
}

// TestUsageByQOS checks that usage by quality of service is requested only in a
// protocol that has the flag for it. In an older one, the daemon would answer with
// the usage in all of them.
func TestUsageByQOS(t *testing.T) {
	t.Parallel()
	for v := codec.Oldest; v <= codec.Newest; v++ {
		asked := model.AssocFilterFlags(0)
		s := &server.Server{Newest: v, Persistent: map[message.Type]server.Handler{
			message.AccountingGetAssocs: decoded(message.AccountingGotAssocs, func(r *message.GetAssociations) (message.Body, error) {
				asked = r.Flags
				usage := []model.Usage{{AllocSecs: 1 << 40, ID: 5, IDAlt: 2, PeriodStart: 1_700_000_000, TRES: model.TRES{ID: 1001, Type: "gres", Name: "gpu"}}}
				return &message.Associations{ListResponse: listResponse([]string{"x"}, func(string) model.Association { return model.Association{Usage: usage} })}, nil
			}),
		}}
		a := client.NewAccounting(client.Config{Accounting: []client.Address{serve(t, "tcp", s)}})
		for _, flags := range []model.AssocFilterFlags{model.AssocWithUsage, model.AssocWithUsage | model.AssocQOSUsage} {
			var got []model.Usage
			err := client.Records(context.Background(), a, ann, model.AssocFilter{Flags: flags}, func(r *model.Association) error {
				got = append(got, r.Usage...)
				return nil
			})
			if flags&model.AssocQOSUsage != 0 && v < codec.V2411 {
				if errs.KindOf(err) != errs.Unsupported {
					t.Errorf("protocol %d: %v", v, err)
				}
				continue
			}
			if err != nil || asked != flags || len(got) != 1 || got[0].AllocSecs != 1<<40 || got[0].TRES.Name != "gpu" || (got[0].IDAlt == 2) != (v >= codec.V2411) {
				t.Errorf("protocol %d: asked with flags %d, got %+v, %v", v, asked, got, err)
			}
		}
	}
}
