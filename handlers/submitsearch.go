package handlers

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// A keyMark marks a job with the Idempotency-Key of its submission, so that each gateway of
// the cluster finds it. In jobs that are submitted with requests, neither users nor the
// scheduler use these two fields.
type keyMark struct {
	session uint32 // AllocSID: all controllers show it in lists of jobs
	key     string // the beginning of SubmitLine, which controllers show from 25.11 on, and accounting always
	body    string // its end
}

// firstMark is the lowest session of a mark. It is above the ids of processes (2^22), so no
// job that a command has submitted has a mark.
const firstMark = 1 << 30

// markOf returns the mark of a key. Other users may see the mark, and must not be able to
// guess the request from it. So the hash of the body includes the half of the key's hash
// that the mark does not show.
func markOf(k *rest.KeyClaim) keyMark {
	body := sha256.Sum256(append(k.Key[16:], k.Body[:]...))
	return keyMark{session: firstMark | binary.BigEndian.Uint32(k.Key[:])&(firstMark-1),
		key: fmt.Sprintf("Idempotency-Key %x", k.Key[:16]), body: fmt.Sprintf(" %x", body[:16])}
}

// A keyedJob is a job with the mark of a key.
type keyedJob struct {
	id    model.StepID
	line  string // SubmitLine; "" if the controller does not show it
	same  bool   // … of the same request
	ended bool
}

// A keyedSubmission submits jobs with an Idempotency-Key, unless a job with its mark exists.
type keyedSubmission struct {
	h         *handler
	c         *rest.Call
	mark      keyMark
	owner     model.Opt[uint32]
	submit    func() (*model.Submitted, error)
	found     bool     // the answer is about the job of an earlier request
	cancelled []uint32 // jobs that were submitted twice
}

// keyedSubmission marks the first job with the key, and returns its submission, which
// calls submit.
func (h *handler) keyedSubmission(c *rest.Call, key *rest.KeyClaim, descs []model.JobDesc, submit func() (*model.Submitted, error)) *keyedSubmission {
	k := &keyedSubmission{h: h, c: c, mark: markOf(key), owner: descs[0].UserID, submit: submit}
	if !k.owner.Set {
		if k.owner = h.userID(c, c.User()); c.Client().Local {
			k.owner = model.Some(c.Client().UID)
		}
	}
	descs[0].AllocSID, descs[0].SubmitLine = model.Some(k.mark.session), model.Text(k.mark.key+k.mark.body)
	return k
}

// do submits the jobs, unless a job of an earlier request exists.
//
// If another gateway submits the same request at the same time, both jobs exist for a
// moment. The older one stays.
func (k *keyedSubmission) do() (*model.Submitted, error) {
	jobs, err := k.jobs(0)
	if err != nil {
		return nil, err
	}
	var submitted *model.Submitted
	if len(jobs) == 0 {
		if submitted, err = k.submit(); err != nil {
			return nil, err
		}
		for range 3 { // the controller has just answered, so a failure may be over in a moment
			if jobs, err = k.jobs(submitted.StepID.JobID); err == nil || !k.pause() {
				break
			}
		}
		if err != nil {
			return nil, unknownJob() // another job may exist; a later request looks again
		}
		jobs = append(jobs, keyedJob{id: submitted.StepID, same: true})
	}
	slices.SortFunc(jobs, func(a, b keyedJob) int { return compareAge(a.id.JobID, b.id.JobID) })
	if err := k.cancel(jobs[1:]); err != nil {
		return nil, err
	}
	switch first := jobs[0]; {
	case !first.same:
		return nil, rest.KeyReused()
	case submitted != nil && first.id.JobID == submitted.StepID.JobID:
		return submitted, nil
	default:
		k.found = true
		return &model.Submitted{StepID: first.id}, nil
	}
}

// maxApart is the greatest difference between the numbers of jobs that were submitted at
// about the same time. With a greater one, the numbers have begun again.
const maxApart = 1 << 20

// compareAge compares the numbers of two jobs; that of the older one comes first.
func compareAge(a, b uint32) int {
	if max(a, b)-min(a, b) > maxApart {
		a, b = b, a
	}
	return cmp.Compare(a, b)
}

// cancel cancels jobs that were submitted in addition. If it can't, the outcome is unknown,
// and a later request tries again.
func (k *keyedSubmission) cancel(jobs []keyedJob) error {
	for _, j := range jobs {
		if j.ended {
			continue
		}
		err := k.h.Controller.Kill(k.c.Context(), k.c.Credential(), strconv.FormatUint(uint64(j.id.JobID), 10), uint16(syscall.SIGKILL), 0)
		if err != nil && !isGone(err) {
			return unknownJob()
		}
		k.cancelled = append(k.cancelled, j.id.JobID)
	}
	return nil
}

// unknownJob returns the error of a submission after which it is not known which jobs exist.
func unknownJob() error {
	e := rest.OutcomeUnknown().WithHint("send the same request again; if the answer stays the same, look for the job, and use a new key")
	e.Message = "this request, or an earlier one with the same Idempotency-Key, may have submitted a job"
	return e
}

// jobs returns the jobs with the mark of the key, except own. It returns an error if it
// can't find out whether a job has it.
func (k *keyedSubmission) jobs(own uint32) (list []keyedJob, err error) {
	found := map[uint32]keyedJob{}
	var unknown error
	query := model.Query{User: k.owner, Flags: model.ShowAll, Without: model.JobAllocation | model.JobNodeIndexes}
	_, err = k.h.Controller.Jobs(k.c.Context(), k.c.Credential(), query, func(j *model.Job) error {
		number := cmp.Or(j.ArrayJobID, j.HetJobID, j.StepID.JobID)
		switch {
		case j.AllocSID != k.mark.session || number == own:
			return nil
		case k.owner.Set && j.UserID != k.owner.Number, !k.owner.Set && j.UserName != "" && j.UserName != k.c.User():
			return nil // another user has made this mark
		case !k.owner.Set && j.UserName == "":
			unknown = unknownJob()
		}
		earlier, again := found[number]
		job := keyedJob{id: model.StepID{JobID: number, SLUID: earlier.id.SLUID, Step: model.Some(model.BatchStep)}, line: j.SubmitLine,
			ended: hasEnded(j.State) && (!again || earlier.ended)}
		if j.StepID.JobID == number {
			job.id.SLUID = j.StepID.SLUID
		}
		found[number] = job
		return nil
	})
	if err != nil {
		return nil, errs.Wrap(err, errs.KindOf(err), "the gateway can't look for the job of an earlier request with this Idempotency-Key; nothing was submitted")
	}
	for _, j := range found {
		if j.line == "" {
			j.line = k.recordedLine(j.id.JobID)
		}
		j.same = j.line == k.mark.key+k.mark.body
		switch {
		case j.line == "":
			unknown = unknownJob()
		case strings.HasPrefix(j.line, k.mark.key):
			list = append(list, j)
		}
	}
	return list, unknown
}

const (
	recordedTries  = 6 // how often accounting is asked for a new job, of which it learns a moment later
	searchInterval = 500 * time.Millisecond
)

// pause waits for a moment. It returns false if the client has gone.
func (k *keyedSubmission) pause() bool {
	select {
	case <-time.After(searchInterval):
		return true
	case <-k.c.Context().Done():
		return false
	}
}

// recordedLine returns the command line of a job in accounting, or "" if it can't be read.
func (k *keyedSubmission) recordedLine(id uint32) (line string) {
	if k.h.Accounting == nil || k.h.Cluster == "" {
		return ""
	}
	filter := k.h.jobFilter(model.JobFilterNoTruncation, model.JobSelection{JobID: id})
	for range recordedTries {
		err := recordsOf[model.AccountingJob](k.h, k.c, filter)(func(j *model.AccountingJob) error {
			line = cmp.Or(j.SubmitLine, line)
			return nil
		})
		if line != "" || err != nil || !k.pause() {
			break
		}
	}
	return line
}

// result returns the result of the submission for the audit log.
func (k *keyedSubmission) result(s *model.Submitted) rest.Result {
	result := submitResult(s)
	if k.found {
		result.Code = "replayed"
	}
	for _, id := range k.cancelled {
		result.Objects += fmt.Sprintf(", cancelled %d", id)
	}
	return result
}
