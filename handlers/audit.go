package handlers

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"schedrestd/auth"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// Audit writes a line to the audit log before each change.
type Audit interface {
	// Intend records a change before it is made. It returns when the line has
	// been written. If it returns an error, the caller must not make the
	// change. Otherwise the caller must make the change, and then call report
	// once.
	Intend(context.Context, Change) (report func(Result), err error)
}

// Change describes a change for the audit log before it is made.
type Change struct {
	Request       string // id of the request
	Forwarded     string // client address that a trusted proxy sent; "" for none
	User          string // user of the credential; "" if it has only a uid
	Local         bool   // whether the kernel identified the user, whose uid is UID
	UID           uint32
	ActAs         string // user to act as; "" if this is the user of the credential
	Method, Route string // "job/{job_id}"
	Object        string // changed object, as named by the client; "" for a new one
	Fields        string // names of the fields that the body sets, without values, separated by spaces
}

// Result is the result of a change.
type Result struct {
	Status  int    // of the answer to the client
	Code    string // "ok", or the error's code for programs
	Number  uint32 // Slurm's error number; 0 for none
	Objects string // created or changed objects
}

// change evaluates the client's If-Match and If-None-Match, and then calls the
// function do to make a change. It records the change in the audit log. Every
// call that makes a daemon change something must be inside the function that is
// passed as do.
//
// The object argument is the name of the object, or "" if the name is not known
// before the change. After a successful change, the function describe returns
// the result for the audit log.
func change[T any](c *call, object string, do func() (T, error), describe func(T) Result) (done T, err error) {
	if err := c.precondition(object != ""); err != nil {
		return done, err
	}
	if c.h.Audit == nil {
		return do()
	}
	report, err := c.h.Audit.Intend(c.ctx, c.auditChange(object))
	if err != nil {
		return done, err
	}
	result := Result{Status: http.StatusInternalServerError, Code: errs.OutcomeUnknown} // recorded if do panics
	defer func() { report(result) }()
	if done, err = do(); err != nil {
		result = failureResult(err)
		return done, err
	}
	result = describe(done)
	if result.Status == 0 {
		result.Status = http.StatusOK
	}
	if result.Code == "" {
		result.Code = "ok"
	}
	return done, nil
}

// auditChange returns the Change for the audit log.
func (c *call) auditChange(object string) Change {
	a := Change{Request: c.id, Local: c.client.Local, UID: c.client.UID, ActAs: c.client.ActAs,
		Object: redact(object), Fields: strings.Join(c.fields, " ")}
	if peer, ok := auth.PeerFrom(c.ctx); ok {
		a.Forwarded = peer.Forwarded
	}
	if c.fromProxy { // the gateway's own ids contain no colon, so a client can't imitate them
		a.Request = "proxy:" + c.id
	}
	if c.route != nil {
		a.Method, a.Route = c.route.Method, c.route.Path
	}
	if !c.client.Local {
		a.User = c.client.Claims.User
	}
	return a
}

// failureResult returns the Result of a change that failed with err.
func failureResult(err error) Result {
	code := status(err)
	p := problems(err, code)[0]
	return Result{Status: code, Code: p.Code, Number: uint32(max(0, p.Number))}
}

// submitResult returns the result of a submission.
func submitResult(s *model.Submitted) Result {
	return Result{Objects: strconv.FormatUint(uint64(s.StepID.JobID), 10), Number: s.ErrorCode}
}

// signalResult returns the Result of a request to signal several jobs. The
// daemon may have refused to signal some of them.
func signalResult(list []model.KillResult) (r Result) {
	var ids []string
	for _, k := range list {
		id := jobName(&k)
		if k.Code != 0 {
			id += ":" + strconv.FormatUint(uint64(k.Code), 10)
			if r.Number == 0 {
				r.Number, r.Code = k.Code, "partial"
			}
		}
		ids = append(ids, id)
	}
	r.Objects = strings.Join(ids, " ")
	return r
}

// jobName returns the id of a job that was signalled, such as "12", "12_3" or
// "12+1".
func jobName(k *model.KillResult) string {
	id := strconv.FormatUint(uint64(k.ID.Step.JobID), 10)
	switch {
	case k.ID.ArrayTaskID.Set:
		id += "_" + strconv.FormatUint(uint64(k.ID.ArrayTaskID.Number), 10)
	case k.ID.HetOffset.Set:
		id += "+" + strconv.FormatUint(uint64(k.ID.HetOffset.Number), 10)
	}
	return id
}
