package fault

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"schedrestd/internal/errs"
)

func TestOf(t *testing.T) {
	tests := []struct {
		name   string
		number uint32
		text   string
		kind   errs.Kind
		want   string
	}{
		{name: "known", number: InvalidJobID, kind: errs.NotFound, want: "there is no such job"},
		{name: "known, with a text", number: AccessDenied, text: "over budget\n", kind: errs.Denied, want: "you are not allowed to do this: over budget"},
		{name: "a refused credential gets no reason", number: Authentication, text: "token expired", kind: errs.Unauthenticated, want: "the daemon does not accept the credential"},
		{name: "the same text", number: NoEnvironment, text: "the job has no environment", kind: errs.Invalid, want: "the job has no environment"},
		{name: "the same text and more", number: NoEnvironment, text: "the job has no environment: name one", kind: errs.Invalid, want: "the job has no environment: name one"},
		{name: "the same text with a name", number: InvalidJobID, text: "there is no job 9999", kind: errs.NotFound, want: "there is no job 9999"},
		{name: "the same text about another subject", number: AlreadyDone, text: "job 9 has already ended", kind: errs.Conflict, want: "job 9 has already ended"},
		{name: "a text with some of the same words", number: InvalidJobID, text: "no job may use this", kind: errs.NotFound, want: "there is no such job: no job may use this"},
		{name: "Slurm's own text adds nothing", number: InvalidJobID, text: "Invalid job id specified", kind: errs.NotFound, want: "there is no such job"},
		{name: "Slurm's text, because there is no other", number: 2078, kind: errs.Invalid, want: "job can not start immediately"},
		{name: "an abbreviation", number: 2112, kind: errs.Invalid, want: "X11 forwarding not available"},
		{name: "unknown", number: 2999, kind: errs.BadAnswer, want: "the daemon failed with error number 2999"},
		{name: "unknown, with a text", number: 2999, text: "the license server is down", kind: errs.BadAnswer,
			want: "the daemon failed with error number 2999: the license server is down"},
		{name: "unknown, among the refusals", number: 2184, kind: errs.Invalid, want: "the daemon refused the request with error number 2184"},
		{name: "terminal control", number: AccessDenied, text: "a\x1b[2Jb", kind: errs.Denied, want: "you are not allowed to do this: a [2Jb"},
		{name: "cut within a character", number: NoScript, text: strings.Repeat("é", maxText), kind: errs.Invalid,
			want: "the job has no script: " + strings.Repeat("é", maxText/2)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := Of(tt.number, tt.text)
			if e.Kind != tt.kind || e.Message != tt.want || e.Number != int(tt.number) {
				t.Errorf("got %v %q %d, want %v %q", e.Kind, e.Message, e.Number, tt.kind, tt.want)
			}
		})
	}
}

func TestNumber(t *testing.T) {
	e := errs.New(errs.Invalid, "no partition %q", "x")
	e.Number = InvalidPartition
	tests := []struct {
		name   string
		err    error
		number uint32
		text   string
	}{
		{name: "its own number", err: fmt.Errorf("submit: %w", e), number: InvalidPartition, text: `no partition "x"`},
		{name: "by kind", err: errs.New(errs.Denied, "not yours"), number: AccessDenied, text: "not yours"},
		{name: "the text of another error is not sent", err: errors.New("open key.pem: no such file"), number: Internal},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if n, text := Number(tt.err); n != tt.number || text != tt.text {
				t.Errorf("got %d %q, want %d %q", n, text, tt.number, tt.text)
			}
		})
	}
}

// TestKindsSurviveTheRoundTrip checks that an error has the same kind in our
// client as in the bundled daemon that sent it.
func TestKindsSurviveTheRoundTrip(t *testing.T) {
	changed := map[errs.Kind]errs.Kind{
		errs.Internal:  errs.BadAnswer, // a client treats a daemon's internal error as a bad answer
		errs.Malformed: errs.Invalid,
		errs.BadAnswer: errs.BadAnswer,
	}
	kinds := []errs.Kind{errs.Unchanged}
	for k := errs.Internal; k <= errs.Unsupported; k++ {
		kinds = append(kinds, k)
	}
	for _, k := range kinds {
		number, _ := Number(errs.New(k, "x"))
		want, ok := changed[k]
		if !ok {
			want = k
		}
		if got := Of(number, "").Kind; got != want {
			t.Errorf("%v: travels as %d and arrives as %v, want %v", k, number, got, want)
		}
	}
}

// TestEveryNumber checks that each of Slurm's numbers has Slurm's text and a
// kind. If slurmrestd blames the request for an error, our gateway must do the
// same, but may use a more precise status.
func TestEveryNumber(t *testing.T) {
	data, err := os.ReadFile("testdata/errors.tsv")
	if err != nil {
		t.Fatal(err)
	}
	_, rows, _ := strings.Cut(string(data), "\n")
	numbers := map[uint32]bool{}
	for line := range strings.Lines(rows) {
		column := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		n, err := strconv.ParseUint(column[0], 10, 32)
		if err != nil || len(column) != 5 {
			t.Fatalf("%q: %v", line, err)
		}
		number, name, status, text := uint32(n), column[1], column[3], column[4]
		numbers[number] = true
		if text == "" {
			text = "Unknown error " + column[0]
		}
		if got := Text(int(number)); got != text {
			t.Errorf("%d %s: text %q, want %q", number, name, got, text)
		}
		e := Of(number, "")
		if strings.Contains(e.Message, column[0]) {
			t.Errorf("%d %s: a client receives only the number: %q", number, name, e.Message)
		}
		if status == "" && isRefusal(number) && !slices.Contains(refusals, e.Kind) && !slices.Contains(daemonFaults, number) {
			t.Errorf("%d %s: %v is no refusal", number, name, e.Kind)
		}
	}
	var last uint32
	for _, r := range table {
		if r.number <= last {
			t.Errorf("%d is not in order", r.number)
		}
		last = r.number
		if r.number >= 1000 && !numbers[r.number] {
			t.Errorf("%d is not a number of Slurm's", r.number)
		}
	}
}

// refusals lists the kinds of errors that blame the request. Those without a
// status of their own result in 422.
var refusals = []errs.Kind{errs.Invalid, errs.NotFound, errs.Denied, errs.Conflict, errs.TooLarge, errs.TooMany, errs.Unsupported}

// daemonFaults lists the numbers of refusals for which the daemon's state, and
// not the request, is responsible: standby, an internal error, or disabled
// submissions.
var daemonFaults = []uint32{Standby, Internal, SubmissionsDisabled, StandbyUseBackup}
