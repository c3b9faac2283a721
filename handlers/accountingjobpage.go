package handlers

import (
	"strconv"
	"strings"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// manyJobs is the maximum number of jobs that pagesOf requests at a time.
const manyJobs = 10_000

// recordedJobKey returns the key of a job's record as a text, for pages. Several
// clusters use the same job numbers, and a cluster may use a number again. The
// order of the texts is that of the keys.
func recordedJobKey(j *model.AccountingJob) string {
	k := j.Key()
	return numberKey(uint64(k.JobID)) + k.Cluster + endOfCluster + numberKey(k.Run)
}

// endOfCluster is not in the name of a cluster, and precedes all other bytes.
const endOfCluster = "\x00"

// parseRecordedJobKey returns the key that recordedJobKey has converted to text.
// The key of an empty text is the zero value.
func parseRecordedJobKey(text string) (k model.AccountingJobKey, err error) {
	if text == "" {
		return k, nil
	}
	const digits = 20
	if len(text) >= 2*digits+len(endOfCluster) {
		middle := len(text) - digits
		id, idErr := strconv.ParseUint(text[:digits], 10, 32)
		cluster, ok := strings.CutSuffix(text[digits:middle], endOfCluster)
		run, runErr := strconv.ParseUint(text[middle:], 10, 64)
		if idErr == nil && ok && runErr == nil {
			return model.AccountingJobKey{JobID: uint32(id), Cluster: cluster, Run: run}, nil
		}
	}
	return k, errs.New(errs.Malformed, "not a token from meta.continue of this list").WithSource(rest.InQuery + api.ContinueParameter.Name).
		WithHint("omit the parameter to get the first page")
}

// pagesOf returns the recorded jobs from the page on, for a request that asks for
// at most limit jobs and removes those for which the function wants returns
// false. It requests further pages until there are more than limit jobs, or no
// further ones. These pages become longer, in case it removes most jobs.
//
// A daemon that has no pages answers with the whole list. Then there are either
// more jobs than a page has, or pagesOf has passed on all of them: in the next
// answer, no job follows the last one.
func (h *handler) pagesOf(c *rest.Call, page model.AccountingJobPage, limit int, wants func(*model.AccountingJob) bool) schema.Stream[model.AccountingJob] {
	return func(each func(*model.AccountingJob) error) error {
		for wanted := 0; ; {
			received, last := uint32(0), page.After
			err := recordsOf[model.AccountingJob](h, c, page)(func(j *model.AccountingJob) error {
				key := j.Key()
				if key.Compare(page.After) <= 0 {
					return nil
				}
				received++
				if key.Compare(last) > 0 {
					last = key
				}
				if !wants(j) {
					return nil
				}
				wanted++
				return each(j)
			})
			if err != nil || received != page.Limit || wanted > limit {
				return err
			}
			page.After, page.Limit = last, min(4*page.Limit, manyJobs)
		}
	}
}
