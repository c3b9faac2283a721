package dbd

import (
	"context"
	"testing"

	"schedrestd/bundled/daemon"
	"schedrestd/conf"
	"schedrestd/model"
	"schedrestd/rpc/client"
)

// TestPrivate checks that PrivateData= determines whether an ordinary user sees
// the jobs of other users, and whether the user sees how many requests other
// users have sent.
func TestPrivate(t *testing.T) {
	store := open(t, storeFile(t))
	ownJob, otherJob := job(1, 1, model.JobRunning), job(2, 1, model.JobRunning)
	ownJob.UserID, otherJob.UserID = 1000, 1001
	if err := store.Record(t.Context(), "c1", []model.Job{ownJob, otherJob}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name        string
		private     conf.PrivateData
		jobs, users int
	}{
		{"unset", 0, 1, 1},
		{"none", conf.PrivateNone, 2, 2},
		{"jobs", conf.PrivateNone | conf.PrivateJobs, 1, 2},
		{"users", conf.PrivateNone | conf.PrivateUsers, 2, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conn := serveTokens(t, New(store, daemon.Privacy{Hidden: tt.private, Super: onlyRoot}, quiet))()
			list := func(cred model.Credential) (n int) {
				count := func(*model.AccountingJob) error { n++; return nil }
				if err := client.Records(context.Background(), conn, cred, model.AccountingJobFilter{}, count); err != nil {
					t.Fatal(err)
				}
				return n
			}
			if n := list(model.Credential{Token: "0"}); n != 2 {
				t.Errorf("root sees %d jobs", n)
			}
			user := model.Credential{Token: "1000"}
			if n := list(user); n != tt.jobs {
				t.Errorf("%d jobs are seen, want %d", n, tt.jobs)
			}
			stats, _, err := conn.Stats(context.Background(), user)
			if err != nil || len(stats.Users) != tt.users {
				t.Errorf("calls of %d users are seen, want %d: %v", len(stats.Users), tt.users, err)
			}
		})
	}
}
