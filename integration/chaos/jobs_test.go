package chaos

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"schedrestd/integration/harness"
)

// chaosJobs holds every submitted job by name, and every job whose submission
// was answered also by number. Each name is used in only one request.
type chaosJobs struct {
	mu    sync.Mutex
	named map[string]*chaosJob
	byID  map[int]*chaosJob
}

// chaosJob is a submitted job. chaosJobs.mu protects its fields.
type chaosJob struct {
	name, user string
	id         int    // 0: there was no answer
	restarts   int    // number of the controller's restarts when the submission was answered
	request    string // the gateway's id of the request
	lost       bool   // the outcome of the submission is unknown
	cancelling bool
	cancelled  bool // the job was cancelled, and the client got the answer
}

// shownJob is a job as it appears in an answer.
type shownJob struct {
	ID    int      `json:"job_id"`
	Name  string   `json:"name"`
	User  string   `json:"user_name"`
	State []string `json:"job_state"`
	Hold  bool     `json:"hold"`
}

func newChaosJobs() *chaosJobs {
	return &chaosJobs{named: map[string]*chaosJob{}, byID: map[int]*chaosJob{}}
}

// add records a job that is about to be submitted.
func (j *chaosJobs) add(name, user string) *chaosJob {
	job := &chaosJob{name: name, user: user}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.named[name] = job
	return job
}

// setAnswered records that the submission of a job was answered with a job
// number.
func (j *chaosJobs) setAnswered(job *chaosJob, id, restarts int, request string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if existing := j.byID[id]; existing != nil || id < 1 {
		return fmt.Errorf("%s was answered with number %d, which is %+v", job.name, id, existing)
	}
	job.id, job.restarts, job.request = id, restarts, request
	j.byID[id] = job
	return nil
}

// setLost records that the outcome of a submission is unknown.
func (j *chaosJobs) setLost(job *chaosJob) {
	j.mu.Lock()
	defer j.mu.Unlock()
	job.lost = true
}

// takeLost returns the numbers of those jobs of a user in list of whose submissions the
// outcome is unknown. They must be cancelled: otherwise they reach the limit on a
// user's jobs, and the controller forgets the others as soon as they end.
func (j *chaosJobs) takeLost(list []shownJob, user string) (ids []int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range list {
		if job := j.named[s.Name]; job != nil && job.lost && job.user == user && !job.cancelling {
			job.cancelling = true
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// pick returns a job that was submitted successfully and has not been
// cancelled. Its owner is a user for whom match returns true. pick returns nil
// if there is no such job.
func (j *chaosJobs) pick(match func(string) bool) *chaosJob {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, job := range j.byID { // in random order
		if !job.cancelling && match(job.user) {
			return job
		}
	}
	return nil
}

// expected returns the jobs that a list must contain if it is requested now.
// Jobs of users for whom match returns false are omitted.
func (j *chaosJobs) expected(match func(string) bool) []*chaosJob {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Collect(func(yield func(*chaosJob) bool) {
		for _, job := range j.byID {
			if !job.cancelling && match(job.user) && !yield(job) {
				return
			}
		}
	})
}

// check returns an error if s, a job in an answer, is wrong. wasCancelled must
// be set if the job had been cancelled before the request.
func (j *chaosJobs) check(s shownJob, wasCancelled bool) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	job := j.named[s.Name]
	switch {
	case job == nil:
		return fmt.Errorf("job %d: no client submitted %q", s.ID, s.Name)
	case job.user != s.User:
		return fmt.Errorf("job %d of %s is shown as %s's", s.ID, job.user, s.User)
	case job.id != 0 && job.id != s.ID:
		return fmt.Errorf("job %d is shown as %d: %q is there twice", job.id, s.ID, s.Name)
	case !job.cancelling && (!s.Hold || !slices.Equal(s.State, []string{"PENDING"})):
		return fmt.Errorf("job %d, which is held, is %v, hold %t", s.ID, s.State, s.Hold)
	case wasCancelled && !slices.Equal(s.State, []string{"CANCELLED"}):
		return fmt.Errorf("job %d, which was cancelled, is %v", s.ID, s.State)
	}
	return nil
}

// checkList returns an error if list contains a job twice, a wrong job, or a
// job of a user for whom match returns false. It also returns an error if a job
// in expected is missing from list, unless a client has begun to cancel that
// job. The caller must get expected from j.expected(match) before it requests
// the list.
func (j *chaosJobs) checkList(list []shownJob, expected []*chaosJob, match func(string) bool) error {
	names := map[string]bool{}
	for _, s := range list {
		if names[s.Name] {
			return fmt.Errorf("%q is in the list twice", s.Name)
		}
		if names[s.Name] = true; !match(s.User) {
			return fmt.Errorf("%q of %s is in the list", s.Name, s.User)
		}
		if err := j.check(s, false); err != nil {
			return err
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, job := range expected {
		if !job.cancelling && !names[job.name] {
			return fmt.Errorf("job %d is not in a list of %d", job.id, len(list))
		}
	}
	return nil
}

// chaosToken returns a token of the given user, signed with the daemons' key.
// The test signs the token itself, because the controller creates tokens for
// other users only if root asks.
func (c *chaos) chaosToken(user string) string {
	key, err := os.ReadFile(c.Key())
	harness.Must(c.t, err)
	now := time.Now()
	return harness.NewToken(c.t, key, jwt.SigningMethodHS256, jwt.MapClaims{"iat": now.Unix(), "exp": now.Add(c.duration + time.Hour).Unix(), "sun": user})
}

// chaosCounts counts the clients' requests and their results.
type chaosCounts struct {
	mu      sync.Mutex
	counts  map[string]int
	seen    map[string]bool // ids of requests; each may appear in one answer only
	wrong   int
	longest time.Duration // longest duration of a request, whatever its result
}

func (y *chaosCounts) add(name string) { y.mu.Lock(); y.counts[name]++; y.mu.Unlock() }

func (y *chaosCounts) get(name string) int { y.mu.Lock(); defer y.mu.Unlock(); return y.counts[name] }

func (y *chaosCounts) addDuration(d time.Duration) {
	y.mu.Lock()
	y.longest = max(y.longest, d)
	y.mu.Unlock()
}

// isNew reports whether the id of a request is new.
func (y *chaosCounts) isNew(id string) bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	old := y.seen[id]
	y.seen[id] = true
	return !old
}

// shouldReport reports whether to print another error. It limits the number of
// printed errors, because there may be many similar ones.
func (y *chaosCounts) shouldReport() bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.wrong++
	return y.wrong <= 20
}

func (y *chaosCounts) print(line func(string, any)) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for _, name := range slices.SortedFunc(maps.Keys(y.counts), strings.Compare) {
		line(name, y.counts[name])
	}
	line("wrong", y.wrong)
	line("the longest took", y.longest.Round(time.Millisecond))
}
