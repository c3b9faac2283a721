package handlers

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"schedrestd/auth"
	"schedrestd/errs"
	"schedrestd/model"
)

// Audit has a line in the audit log for each change, before it is made.
type Audit interface {
	// Intend says what is about to be changed, and waits for leave. An error says that it must not be changed. Else
	// report is called once, with what became of it.
	Intend(context.Context, Change) (report func(Result), err error)
}

// Change is what the audit log has of a change before it is made.
type Change struct {
	Request       string // id of the request
	Forwarded     string // for whom a trusted proxy says that it asks, an address; "": nobody
	User          string // whose credential it is; "" when it has a uid alone
	Local         bool   // UID is that user, by the kernel's word
	UID           uint32
	ActAs         string // who he wants to be; "": himself
	Method, Route string // "job/{job_id}"
	Object        string // what is changed, as the client names it; "" when it is made
	Fields        string // names of the fields that the body sets, with spaces between them; no values
}

// Result is what became of a change.
type Result struct {
	Status  int    // that the client is answered with
	Code    string // "ok", or the word for programs of the error
	Number  uint32 // Slurm's number of it; 0: none
	Objects string // what was made, or changed
}

// change makes a change: every request that has a daemon change something calls the daemon in do, and nowhere else.
// object is what is changed, as far as it is known before; name tells what was, and how, when all went well.
// A condition of the client's is judged before.
func change[T any](c *call, object string, do func() (T, error), name func(T) Result) (done T, err error) {
	if err := c.precondition(object != ""); err != nil {
		return done, err
	}
	if c.h.Audit == nil {
		return do()
	}
	report, err := c.h.Audit.Intend(c.ctx, c.about(object))
	if err != nil {
		return done, err
	}
	result := Result{Status: http.StatusInternalServerError, Code: errs.OutcomeUnknown} // of a panic
	defer func() { report(result) }()
	if done, err = do(); err != nil {
		result = failed(err)
		return done, err
	}
	result = name(done)
	result.Status = http.StatusOK
	if result.Code == "" {
		result.Code = "ok"
	}
	return done, nil
}

// about is what the log has of c's change.
func (c *call) about(object string) Change {
	a := Change{Request: c.id, Local: c.who.Local, UID: c.who.UID, ActAs: c.who.ActAs, Object: conceal(object), Fields: strings.Join(c.fields, " ")}
	if peer, ok := auth.PeerFrom(c.ctx); ok {
		a.Forwarded = peer.Forwarded
	}
	if c.route != nil {
		a.Method, a.Route = c.route.Method, c.route.Path
	}
	if !c.who.Local {
		a.User = c.who.Claims.User
	}
	return a
}

// failed is the result of a change that a daemon refused, or that came to nothing otherwise.
func failed(err error) Result {
	code := status(err)
	p := problems(err, code)[0]
	return Result{Status: code, Code: p.Code, Number: uint32(max(0, p.Number))}
}

// made is the result of a submission.
func made(s *model.Submitted) Result {
	return Result{Objects: strconv.FormatUint(uint64(s.StepID.JobID), 10), Number: s.ErrorCode}
}

// signalled is the result of a signal to several jobs, of which some may have refused it.
func signalled(list []model.KillResult) (r Result) {
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

// jobName returns the name of a job that was sent a signal, as "12", "12_3" or
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
