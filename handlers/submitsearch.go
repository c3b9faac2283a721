package handlers

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/internal/keystate"
	"schedrestd/model"
)

// A keyMark marks a job with the Idempotency-Key of its submission, so that each gateway of
// the cluster finds it. Neither users nor the scheduler use the two fields of jobs that are
// submitted with requests.
type keyMark struct {
	session uint32 // AllocSID: all controllers show it in lists of jobs
	key     string // the beginning of SubmitLine, which controllers show from 25.11 on, and accounting always
	body    string // its end
}

// firstMark is the lowest session of a mark. It is above the ids of processes (2^22), so no
// job that a command has submitted has a mark.
const firstMark = 1 << 30

func markOf(k *rest.KeyClaim) keyMark {
	return keyMark{session: firstMark | binary.BigEndian.Uint32(k.Key[:])&(firstMark-1),
		key: fmt.Sprintf("Idempotency-Key %x", k.Key[:16]), body: fmt.Sprintf(" %x", k.Body[:16])}
}

// submitUnlessFound returns a function that submits jobs with the function submit, unless a
// job with the mark of the request's Idempotency-Key exists. Then found is set.
//
// If a gateway that has gone away, or does not know of this one, submits the same request at
// the same time, both jobs exist for a moment. The one with the lower number stays.
func (h *handler) submitUnlessFound(c *rest.Call, descs []model.JobDesc, key *rest.KeyClaim, found *bool, submit func() (*model.Submitted, error)) func() (*model.Submitted, error) {
	m := markOf(key)
	first := &descs[0]
	first.AllocSID, first.SubmitLine = model.Some(m.session), model.Text(m.key+m.body)
	return func() (*model.Submitted, error) {
		earlier, err := h.marked(c, m, first.UserID, nil)
		if err != nil {
			return nil, err
		}
		if len(earlier) == 0 {
			submitted, err := submit()
			if err != nil {
				return nil, err
			}
			if earlier, err = h.marked(c, m, first.UserID, submitted); err != nil || len(earlier) == 0 {
				return submitted, nil // a failure to look for others is none of the submission
			}
			earlier = append(earlier, *submitted)
			slices.SortFunc(earlier, func(a, b model.Submitted) int { return cmp.Compare(a.StepID.JobID, b.StepID.JobID) })
			for _, s := range earlier[1:] {
				_ = h.Controller.Kill(c.Context(), c.Credential(), strconv.FormatUint(uint64(s.StepID.JobID), 10), uint16(syscall.SIGKILL), 0)
			}
			if earlier[0].StepID.JobID == submitted.StepID.JobID {
				return submitted, nil
			}
		}
		*found = true
		return &earlier[0], nil
	}
}

// marked returns the jobs with a mark, except own, which may be nil. If it can't find out
// whether a job has the mark, the error is a rest.KeyError, and also if the mark belongs to
// another request with the same key.
func (h *handler) marked(c *rest.Call, m keyMark, owner model.Opt[uint32], own *model.Submitted) (list []model.Submitted, err error) {
	if !owner.Set {
		if owner = h.userID(c, c.User()); c.Client().Local {
			owner = model.Some(c.Client().UID)
		}
	}
	lines := map[model.StepID]string{}
	_, err = h.Controller.Jobs(c.Context(), c.Credential(), model.Query{User: owner, Flags: model.ShowAll, Without: model.JobAllocation | model.JobNodeIndexes}, func(j *model.Job) error {
		id := model.StepID{JobID: cmp.Or(j.ArrayJobID, j.HetJobID, j.StepID.JobID), Step: model.Some(batchStep)}
		if j.StepID.JobID == id.JobID {
			id.SLUID = j.StepID.SLUID
		}
		if j.AllocSID == m.session && (own == nil || own.StepID.JobID != id.JobID) {
			lines[id] = j.SubmitLine
		}
		return nil
	})
	if err != nil {
		return nil, errs.Wrap(err, errs.KindOf(err), "the job of an earlier request with this Idempotency-Key can't be looked for; nothing was submitted")
	}
	for id, line := range lines {
		if line == "" {
			line = h.recordedLine(c, id.JobID)
		}
		switch {
		case line == m.key+m.body:
			list = append(list, model.Submitted{StepID: id})
		case line == "":
			return nil, &rest.KeyError{State: keystate.Unknown}
		case strings.HasPrefix(line, m.key):
			return nil, &rest.KeyError{State: keystate.Mismatch}
		}
	}
	return list, nil
}

const (
	batchStep uint32 = 0xfffffffb

	recordedTries    = 6 // how often accounting is asked for a new job, of which it learns a moment later
	recordedInterval = 500 * time.Millisecond
)

// recordedLine returns the command line of a job in accounting, or "" if it can't be read.
func (h *handler) recordedLine(c *rest.Call, id uint32) (line string) {
	if h.Accounting == nil || h.Cluster == "" {
		return ""
	}
	filter := model.AccountingJobFilter{Flags: defaultJobFlags, Clusters: []string{h.Cluster}, Steps: []model.SelectedStep{{Step: model.StepID{JobID: id}}}}
	for try := range recordedTries {
		if try > 0 {
			select {
			case <-time.After(recordedInterval):
			case <-c.Context().Done():
				return ""
			}
		}
		err := recordsOf[model.AccountingJob](h, c, filter)(func(j *model.AccountingJob) error {
			line = cmp.Or(j.SubmitLine, line)
			return nil
		})
		if line != "" || err != nil {
			return line
		}
	}
	return ""
}
