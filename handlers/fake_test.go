package handlers

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/auth"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
)

// fake is a controller and an accounting daemon. The test determines its
// answers.
type fake struct {
	release      string
	callErr      error            // error of every call; nil for none
	callErrs     map[string]error // by the call, in place of callErr
	pings        []model.Ping
	nodes        []model.Node
	partitions   []model.Partition
	jobs         []model.Job
	reservations []model.Reservation
	licenses     []model.License
	counts       model.ControllerStats
	shares       []model.Share
	tresNames    []string
	assocLimits  []model.AssocLimits
	qosLimits    []model.QOSLimits
	totalShares  uint64
	priorities   []model.JobPriority
	states       []model.JobStateEntry // nil for a controller that does not support the request
	lastUpdate   model.Time
	backfill     model.Time
	submitErr    error
	submitting   func() // called by each submission
	killErr      error
	remark       uint32 // ErrorCode of submissions
	midwayErr    error  // error after the elements of a list
	midwayCall   string // the only accounting list that ends with midwayErr; "" for all lists
	stats        model.AccountingStats
	recorded     recorded

	calls        []string         // calls in order
	submitted    []*model.JobDesc // submitted jobs
	cancelled    []string
	killResults  []model.KillResult
	taskResults  []model.TaskResult
	nodeUpdates  []*model.NodeUpdate
	requeueErrs  map[string]error
	killRequests []*model.KillJobs
	killArgs     [][2]uint16 // signal and flags of each Kill
	queries      []model.Query
	creds        []model.Credential

	changes
	limitQueries     []model.LimitsQuery
	partitionQueries []model.Query
	selected         [][]model.JobSelection
	shareQueries     [][2][]string // accounts and users of each request for shares
}

func (f *fake) logCall(call string, cred model.Credential) error {
	f.calls = append(f.calls, call)
	f.creds = append(f.creds, cred)
	if err := f.callErrs[call]; err != nil {
		return err
	}
	return f.callErr
}

func (f *fake) Verify(_ context.Context, cred model.Credential) error {
	return f.logCall("verify", cred)
}

func (f *fake) Ping(_ context.Context, cred model.Credential) ([]model.Ping, error) {
	return f.pings, f.logCall("ping", cred)
}

func (f *fake) Nodes(_ context.Context, cred model.Credential, q model.Query, each func(*model.Node) error) (model.Time, error) {
	f.queries = append(f.queries, q)
	if err := f.logCall("nodes", cred); err != nil {
		return 0, err
	}
	return f.lastUpdate, eachOf(f.nodes, each, f.midwayErr)
}

func (f *fake) Node(_ context.Context, cred model.Credential, name string, q model.Query) (*model.Node, model.Time, error) {
	f.queries = append(f.queries, q)
	if err := f.logCall("node "+name, cred); err != nil {
		return nil, 0, err
	}
	for i := range f.nodes {
		if f.nodes[i].Name == name {
			return &f.nodes[i], f.lastUpdate, nil
		}
	}
	return nil, 0, &errs.Error{Kind: errs.NotFound, Message: "there is no such node", Number: 2018}
}

func (f *fake) Partitions(_ context.Context, cred model.Credential, q model.Query, each func(*model.Partition) error) (model.Time, error) {
	f.partitionQueries = append(f.partitionQueries, q) // kept apart from f.queries, because requests for nodes also read the partitions
	if err := f.logCall("partitions", cred); err != nil {
		return 0, err
	}
	return f.lastUpdate, eachOf(f.partitions, each, f.midwayErr)
}

func (f *fake) Partition(_ context.Context, cred model.Credential, name string, q model.Query) (*model.Partition, model.Time, error) {
	f.queries = append(f.queries, q)
	if err := f.logCall("partition "+name, cred); err != nil {
		return nil, 0, err
	}
	return findByName(f.partitions, func(p *model.Partition) string { return p.Name }, name, f.lastUpdate, 2000)
}

// findByName returns the element with the given name, and lastUpdate. If list
// has no such element, it returns an error with Slurm's error number.
func findByName[T any](list []T, getName func(*T) string, name string, lastUpdate model.Time, number int) (*T, model.Time, error) {
	for i := range list {
		if getName(&list[i]) == name {
			return &list[i], lastUpdate, nil
		}
	}
	return nil, 0, &errs.Error{Kind: errs.NotFound, Message: "not found", Number: number}
}

func (f *fake) Jobs(_ context.Context, cred model.Credential, q model.Query, each func(*model.Job) error) (model.ListTimes, error) {
	f.queries = append(f.queries, q)
	if err := f.logCall("jobs", cred); err != nil {
		return model.ListTimes{}, err
	}
	return model.ListTimes{LastUpdate: f.lastUpdate, LastBackfill: f.backfill}, eachOf(f.jobs, each, f.midwayErr)
}

func (f *fake) Job(_ context.Context, cred model.Credential, id uint32, q model.Query, each func(*model.Job) error) (model.ListTimes, error) {
	f.queries = append(f.queries, q)
	if err := f.logCall("job", cred); err != nil {
		return model.ListTimes{}, err
	}
	var family []model.Job // the whole array or heterogeneous job, which is what a controller returns
	known := false
	for i := range f.jobs {
		if j := &f.jobs[i]; j.StepID.JobID == id || j.ArrayJobID == id || j.HetJobID == id {
			family = append(family, *j)
			known = known || j.StepID.JobID == id
		}
	}
	if !known {
		return model.ListTimes{}, &errs.Error{Kind: errs.NotFound, Message: "there is no such job", Number: 2017}
	}
	return model.ListTimes{LastUpdate: f.lastUpdate, LastBackfill: f.backfill}, eachOf(family, each, f.midwayErr)
}

func (f *fake) JobStates(_ context.Context, cred model.Credential, jobs []model.JobSelection, each func(*model.JobStateEntry) error) error {
	f.selected = append(f.selected, jobs)
	if err := f.logCall("states", cred); err != nil {
		return err
	}
	if f.states == nil {
		return errs.New(errs.Unsupported, "the controller is too old for this")
	}
	return eachOf(f.states, each, f.midwayErr)
}

func (f *fake) Submit(_ context.Context, cred model.Credential, desc *model.JobDesc) (*model.Submitted, error) {
	if err := f.logCall("submit", cred); err != nil {
		return nil, err
	}
	if f.submitErr != nil {
		return nil, f.submitErr
	}
	f.submitted = append(f.submitted, desc)
	if f.submitting != nil {
		f.submitting()
	}
	return &model.Submitted{StepID: model.StepID{JobID: 17, Step: model.Some[uint32](0xfffffffb)}, ErrorCode: f.remark}, nil
}

func (f *fake) UpdateJob(_ context.Context, cred model.Credential, id string, desc *model.JobDesc) ([]model.TaskResult, error) {
	if err := f.logCall("update "+id, cred); err != nil {
		return nil, err
	}
	f.submitted = append(f.submitted, desc)
	return f.taskResults, f.submitErr
}

func (f *fake) Requeue(_ context.Context, cred model.Credential, id string, flags model.Requeue) ([]model.TaskResult, error) {
	if err := f.logCall(fmt.Sprintf("requeue %s %#x", id, uint32(flags)), cred); err != nil {
		return nil, err
	}
	return f.taskResults, f.requeueErrs[id]
}

func (f *fake) KillJobs(_ context.Context, cred model.Credential, k *model.KillJobs) ([]model.KillResult, error) {
	f.killRequests = append(f.killRequests, k)
	return f.killResults, f.logCall("kill jobs", cred)
}

func (f *fake) UpdateNodes(_ context.Context, cred model.Credential, u *model.NodeUpdate) error {
	f.nodeUpdates = append(f.nodeUpdates, u)
	return f.logChange("update node "+u.Names, cred)
}

func (f *fake) CreateNode(_ context.Context, cred model.Credential, line string) error {
	return f.logChange("create node "+line, cred)
}

func (f *fake) DeleteNodes(_ context.Context, cred model.Credential, names string) error {
	return f.logChange("delete node "+names, cred)
}

func (f *fake) DeleteReservation(_ context.Context, cred model.Credential, name string) error {
	return f.logChange("delete reservation "+name, cred)
}

func (f *fake) Reconfigure(_ context.Context, cred model.Credential) error {
	return f.logChange("reconfigure", cred)
}

// logChange returns the error of a change.
func (f *fake) logChange(call string, cred model.Credential) error {
	if err := f.logCall(call, cred); err != nil {
		return err
	}
	return f.submitErr
}

func (f *fake) Kill(_ context.Context, cred model.Credential, id string, signal uint16, flags model.Kill) error {
	f.cancelled = append(f.cancelled, id)
	f.killArgs = append(f.killArgs, [2]uint16{signal, uint16(flags)})
	return cmp.Or(f.logCall("cancel", cred), f.killErr)
}

func (f *fake) KillEach(ctx context.Context, cred model.Credential, id string, signal uint16, flags model.Kill) ([]model.KillResult, error) {
	return f.killResults, f.Kill(ctx, cred, id, signal, flags)
}

func (f *fake) Release(context.Context, model.Credential) string { return f.release }

func (f *fake) Stats(_ context.Context, cred model.Credential) (*model.ControllerStats, error) {
	return &f.counts, f.logCall("diag", cred)
}

// accounts makes a fake act as an accounting daemon. It is a separate type,
// because the controller and the accounting daemon return statistics of
// different types.
type accounts struct{ *fake }

func (a accounts) Stats(_ context.Context, cred model.Credential) (*model.AccountingStats, []model.Ping, error) {
	return &a.stats, a.pings, a.logCall("stats", cred)
}

func eachOf[T any](list []T, each func(*T) error, end error) error {
	for i := range list {
		if err := each(&list[i]); err != nil {
			return err
		}
	}
	return end
}

// users has the user names for tests.
type users map[uint32]string

func (u users) User(n uint32) string {
	if name := u[n]; name != "" {
		return name
	}
	return api.Numbers{}.User(n)
}

func (u users) Group(n uint32) string { return u.User(n) }

// UserID returns the id of the user with that name.
func (u users) UserID(_ context.Context, name string) (uint32, error) {
	if name == "slow" {
		return 0, errs.New(errs.Unavailable, "the user database is unavailable")
	}
	for n, known := range u {
		if known == name {
			return n, nil
		}
	}
	return 0, errs.New(errs.NotFound, "not a name")
}

func (u users) GroupID(ctx context.Context, name string) (uint32, error) { return u.UserID(ctx, name) }

var testUsers = users{0: "root", 20001: "alice", 20002: "bob"}

// now is the current time in the tests.
var now = time.Unix(1_795_000_000, 0)

// token is alice's token {"alg":"HS256"}
// {"exp":1795000600,"iat":1795000000,"sun":"alice"}, with an invalid signature.
const token = "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjE3OTUwMDA2MDAsImlhdCI6MTc5NTAwMDAwMCwic3VuIjoiYWxpY2UifQ.c2lnbmF0dXJlc2lnbmF0dXJlc2lnbmF0dXJlc2lnbmE"

// config returns the configuration of a gateway that uses f as its controller
// and its accounting daemon. The gateway serves both spellings of the paths
// (sched and slurm).
func config(f *fake) Config {
	return Config{
		Controller: f, Accounting: accounts{f},
		Resolver: testUsers, Tokens: fakeTokens{f},
		Config: rest.Config{
			Auth:      auth.Options{JWT: true, Now: func() time.Time { return now }},
			Names:     api.NamesBoth,
			YAML:      schema.Pretty | schema.NoTag,
			Cluster:   "demo",
			Release:   "1.2.3",
			Users:     testUsers,
			ErrorText: fault.Text,
			MaxBody:   50 << 20, ReadBody: 20 * time.Second,
		},
	}
}

// request returns a request by the user alice.
func request(method, path, body string) *http.Request {
	r := newRequest(method, path, body)
	r.Header.Set("X-SCHED-USER-TOKEN", token)
	return r
}

// serve answers r with the handlers for cfg, and checks that the answer agrees
// with the OpenAPI document.
func serve(t *testing.T, cfg Config, r *http.Request) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	s := newTestServer(cfg)
	s.ServeHTTP(w, r)
	if r.URL.Query().Get("fields") == "" { // otherwise the records lack fields that the document requires
		checkDocumented(t, s, r, w)
	}
	return w
}

// maxParams is the number of parameters in a query that package rest accepts.
const maxParams = 100

// testServer is a server with its handlers.
type testServer struct {
	*rest.Server
	handler *handler
}

func newTestServer(cfg Config) testServer {
	h := newHandler(cfg)
	return testServer{h.server(), h}
}
