package fault

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"schedrestd/errs"
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
		{name: "known, with words", number: AccessDenied, text: "over budget\n", kind: errs.Denied, want: "you are not allowed to do this: over budget"},
		{name: "who guesses learns nothing", number: Authentication, text: "token expired", kind: errs.Unauthenticated, want: "the daemon does not accept the credential"},
		{name: "the same words", number: NoEnvironment, text: "the job has no environment", kind: errs.Invalid, want: "the job has no environment"},
		{name: "the same words and more", number: NoEnvironment, text: "the job has no environment: name one", kind: errs.Invalid, want: "the job has no environment: name one"},
		{name: "unknown", number: 2999, kind: errs.BadAnswer, want: "the daemon refused with error number 2999"},
		{name: "terminal control", number: AccessDenied, text: "a\x1b[2Jb", kind: errs.Denied, want: "you are not allowed to do this: a [2Jb"},
		{name: "cut within a letter", number: NoScript, text: strings.Repeat("é", maxText), kind: errs.Invalid,
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
	own := errs.New(errs.Invalid, "no partition %q", "x")
	own.Number = InvalidPartition
	tests := []struct {
		name   string
		err    error
		number uint32
		text   string
	}{
		{name: "its own number", err: fmt.Errorf("submit: %w", own), number: InvalidPartition, text: `no partition "x"`},
		{name: "by kind", err: errs.New(errs.Denied, "not yours"), number: AccessDenied, text: "not yours"},
		{name: "anything else keeps its words", err: errors.New("open key.pem: no such file"), number: Internal},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if n, text := Number(tt.err); n != tt.number || text != tt.text {
				t.Errorf("got %d %q, want %d %q", n, text, tt.number, tt.text)
			}
		})
	}
}

// What a daemon of ours answers for a kind, a client of ours understands as that kind.
func TestKindsSurviveTheRoundTrip(t *testing.T) {
	changed := map[errs.Kind]errs.Kind{
		errs.Internal:  errs.BadAnswer, // a daemon's own fault is, to its client, an answer of no use
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

// Every number of the table is one that Slurm has, and is there once.
func TestTableAgainstSlurm(t *testing.T) {
	data, err := os.ReadFile("testdata/errors.tsv")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		number, _, _ := strings.Cut(line, "\t")
		known[number] = true
	}
	var last uint32
	for _, r := range table {
		if r.number <= last {
			t.Errorf("%d is not in order", r.number)
		}
		last = r.number
		if r.number >= 1000 && !known[fmt.Sprint(r.number)] {
			t.Errorf("%d is not a number of Slurm's", r.number)
		}
		if r.text == "" || strings.HasSuffix(r.text, ".") || strings.ToLower(r.text[:1]) != r.text[:1] {
			t.Errorf("%d: text %q", r.number, r.text)
		}
	}
}
