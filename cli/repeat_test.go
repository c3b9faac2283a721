package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"schedrestd/cli/rest"
	"schedrestd/internal/errs"
)

// TestRepeat checks the pauses between repeated requests, and which of them may
// wait at the server. The clock of the test jumps.
func TestRepeat(t *testing.T) {
	const wait = 40 * time.Second
	unavailable := errs.New(errs.Unavailable, "no server")
	var (
		plain     = answer{}
		same      = answer{m: rest.Meta{Unchanged: true}}
		changed   = answer{m: rest.Meta{Wait: wait}, takes: 3 * time.Second}
		atOnce    = answer{m: rest.Meta{Wait: wait}}
		whole     = answer{m: rest.Meta{Wait: wait, Unchanged: true}, takes: wait}
		early     = answer{m: rest.Meta{Wait: wait, Unchanged: true}, takes: time.Second}
		failed    = answer{err: unavailable}
		cut       = answer{err: unavailable, takes: 30 * time.Second}
		busy      = answer{err: retryAfter(t, http.StatusTooManyRequests, "10")}
		invalid   = answer{err: errs.New(errs.Invalid, "no such thing")}
		slow      = schedule{3 * time.Second, 3 * time.Second, 0}
		patient   = schedule{time.Second, 5 * time.Second, 0}
		impatient = schedule{time.Second, 5 * time.Second, 10 * time.Second}
	)
	for _, tt := range []struct {
		name     string
		schedule schedule
		answers  []answer  // the last one is done, or fails
		want     []float64 // seconds from the end of each answer to the next request, without jitter
		waits    string    // whether each request may wait: w or -
		warnings int
		wantErr  error
	}{
		{"polling", jobSchedule, []answer{plain, same, plain, same, same, same, same, same, plain}, []float64{.5, .75, 1.125, 1.6875, 2.53125, 3.796875, 5, 5}, "wwwwwwwww", 0, nil},
		{"polling at intervals", slow, []answer{plain, same, same}, []float64{3, 3}, "www", 0, nil},
		{"waiting", jobSchedule, []answer{atOnce, changed, whole, whole, changed, atOnce}, []float64{.5, 0, 0, 0, 0}, "wwwwww", 0, nil},
		{"no request more often than the interval", slow, []answer{atOnce, atOnce, changed, atOnce}, []float64{3, 3, 0}, "wwww", 0, nil},
		{"a server that stops", jobSchedule, []answer{changed, early, early, early, changed, early, plain}, []float64{0, .5, .75, 1.125, 0, .5}, "wwwwwww", 0, nil},
		{"a restart", jobSchedule, []answer{changed, failed, failed, plain, changed, plain}, []float64{0, .5, .75, 1.125, 0}, "ww--ww", 0, nil},
		{"a proxy with a short limit", patient, []answer{atOnce, cut, plain, cut, plain}, []float64{1, 1, 1.5, 2.25}, "ww-w-", 0, nil},
		{"too many waiting clients", jobSchedule, []answer{busy, plain, busy, plain}, []float64{10, .75, 10}, "w-w-", 0, nil},
		{"an error that stays", jobSchedule, []answer{plain, invalid}, []float64{.5}, "ww", 0, invalid.err},
		{"a failure for too long", impatient, []answer{failed, failed, failed, failed, failed, failed}, []float64{1, 1.5, 2.25, 3.375, 5}, "w-----", 1, unavailable},
		{"two outages", impatient, []answer{failed, failed, failed, failed, failed, plain, failed, failed, plain}, []float64{1, 1.5, 2.25, 3.375, 5, 5, 5, 5}, "w-----w--", 2, nil},
		{"a failure that goes away", impatient, []answer{failed, failed, failed, plain, failed, failed, plain}, []float64{1, 1.5, 2.25, 3.375, 5, 5}, "w---w--", 1, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, l := &connection{log: func(string, ...any) {}}, &rest.List{}
				warnings := 0
				c.warn = func(string, ...any) { warnings++ }
				var pauses []time.Duration
				var waits []byte
				ended := time.Now()
				err := c.repeat(t.Context(), l, tt.schedule, func() (rest.Meta, bool, error) {
					n := len(waits)
					if waits = append(waits, waitLetter(l.Wait)); n > 0 {
						pauses = append(pauses, time.Since(ended))
					}
					a := tt.answers[n]
					time.Sleep(a.takes)
					ended = time.Now()
					return a.m, n == len(tt.answers)-1 && a.err == nil, a.err
				})
				if err != tt.wantErr || string(waits) != tt.waits || len(pauses) != len(tt.want) || warnings != tt.warnings {
					t.Fatalf("%v, %s, pauses %v, %d warnings; want %v, %s, %v, %d", err, waits, pauses, warnings, tt.wantErr, tt.waits, tt.want, tt.warnings)
				}
				for i, p := range pauses {
					least := time.Duration(tt.want[i] * float64(time.Second)).Truncate(time.Microsecond)
					if p < least || p > least+least/8+time.Millisecond {
						t.Errorf("pause %d: %s, want %s and up to an eighth more", i, p, least)
					}
				}
			})
		})
	}
}

func waitLetter(waits bool) byte {
	if waits {
		return 'w'
	}
	return '-'
}

// An answer is what a repeated request returns, after some time.
type answer struct {
	m     rest.Meta
	err   error
	takes time.Duration
}

// retryAfter returns the error of a request that is answered with this status and
// the header Retry-After.
func retryAfter(t *testing.T, status int, after string) error {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", after)
		reply(w, status, "{}")
	}))
	defer s.Close()
	c, err := rest.Dial(t.Context(), rest.Config{URL: s.URL + "/slurm/v0.0.44"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Jobs(t.Context(), nil, func(*rest.Job) error { return nil })
	return err
}

// TestSplitIDs checks that each id is in one list, and that the lists are short.
func TestSplitIDs(t *testing.T) {
	for _, n := range []int{0, 1, 9, 399, 400, 401, 5000} {
		var ids, got []string
		for i := range n {
			ids = append(ids, fmt.Sprint(123456000+i))
		}
		for first, list := range splitIDs(ids) {
			length := 0
			for _, id := range list {
				length += len(id) + 1
			}
			if first != len(got) || length > maxIDs+20 || len(list) == 0 {
				t.Errorf("%d ids: a list from %d with %d bytes after %d ids", n, first, length, len(got))
			}
			got = append(got, list...)
		}
		if !slices.Equal(got, ids) {
			t.Errorf("%d ids: %d in lists", n, len(got))
		}
	}
}
