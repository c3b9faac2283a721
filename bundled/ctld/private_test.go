package ctld

import (
	"testing"
	"time"

	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// TestPrivate checks that PrivateData= hides jobs, nodes and partitions from an
// ordinary user, but that users always see their own jobs. It also checks that
// an ordinary user can't cancel another user's job, even if the job is visible.
func TestPrivate(t *testing.T) {
	for _, tt := range []struct {
		name               string
		private            conf.PrivateData
		jobs, nodes, parts bool // whether the client sees them
	}{
		{name: "unset", nodes: true, parts: true},
		{name: "none", private: conf.PrivateNone, jobs: true, nodes: true, parts: true},
		{name: "jobs,partitions", private: conf.PrivateNone | conf.PrivateJobs | conf.PrivatePartitions, nodes: true},
		{name: "nodes,users", private: conf.PrivateNone | conf.PrivateNodes | conf.PrivateUsers, jobs: true, parts: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, _ := controller(t, Config{Private: tt.private, Log: quiet})
			j := &job{record: &record{Job: model.Job{UserID: 54321}}}
			j.Job.Priority = 1
			if err := c.reserve(j, time.Now()); err != nil { // the job never starts
				t.Fatal(err)
			}
			wantKind := errs.NotFound
			if tt.jobs {
				wantKind = errs.Denied
			}
			if err := c.checkKill(otherUser, j.id()); errs.KindOf(err) != wantKind {
				t.Errorf("another user cancels the job: %v", err)
			}
			for _, uid := range []uint32{54321, ownUser.UID} {
				if err := c.checkKill(server.Identity{UID: uid}, j.id()); err != nil {
					t.Errorf("user %d cancels the job: %v", uid, err)
				}
			}
			for kind, visible := range map[message.Type]bool{
				message.RequestNodeInfo: tt.nodes, message.RequestNodeInfoSingle: tt.nodes, message.RequestPartitionInfo: tt.parts,
			} {
				// The request has no body. If the client may not call the
				// handler, the error is errs.Denied. Otherwise the handler
				// reports that the body is missing.
				_, _, err := c.Handlers()[kind](t.Context(), &server.Request{Type: kind, Identity: otherUser})
				if denied := errs.KindOf(err) == errs.Denied; denied == visible {
					t.Errorf("message %d: %v", kind, err)
				}
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.jobs, j.id())
		})
	}
}
