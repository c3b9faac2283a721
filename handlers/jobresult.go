package handlers

import (
	"strconv"
	"strings"

	"schedrestd/handlers/rest"
	"schedrestd/model"
)

// submitResult returns the result of a submission.
func submitResult(s *model.Submitted) rest.Result {
	return rest.Result{Objects: strconv.FormatUint(uint64(s.StepID.JobID), 10), Number: s.ErrorCode}
}

// signalResult returns the Result of a request to signal several jobs. The
// daemon may have refused to signal some of them.
func signalResult(list []model.KillResult) (r rest.Result) {
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
