package rest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/api"
	"schedrestd/internal/errs"
	"schedrestd/internal/keystate"
	"schedrestd/model"
)

// TestIdempotencyKeyPanics checks that the outcome of a submission that panics
// is stored as unknown.
func TestIdempotencyKeyPanics(t *testing.T) {
	audit := new(granting)
	func() {
		defer func() { _ = recover() }()
		_, _ = SubmitOnce(keyedCall(audit), func() (*model.Submitted, error) { panic("x") }, nil)
	}()
	if got := audit.result.KeyState(); got != keystate.Unknown {
		t.Errorf("state %d", got)
	}
}

// TestKeyStates checks the state of a key after a submission.
func TestKeyStates(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want keystate.State
	}{
		{nil, keystate.Answered},
		{errs.New(errs.Denied, "no"), keystate.NotDone},
		{&errs.Error{Kind: errs.BadAnswer, Code: errs.OutcomeUnknown}, keystate.Unknown},
	} {
		audit := new(granting)
		_, err := SubmitOnce(keyedCall(audit), func() (*model.Submitted, error) { return &model.Submitted{StepID: model.StepID{JobID: 7}}, tt.err },
			func(*model.Submitted) Result { return Result{Objects: "7"} })
		if got := audit.result.KeyState(); err != tt.err || got != tt.want || (decodeAnswer(audit.result.Answer) != nil) != (err == nil) {
			t.Errorf("%v: state %d, want %d", err, got, tt.want)
		}
	}
}

// keyedCall returns a submission with an Idempotency-Key.
func keyedCall(worker Worker) *Call {
	c := NewServer(Service{}, Config{Worker: worker}).newCall(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", nil))
	c.route, c.key = &Route{Endpoint: &api.Endpoint{Method: http.MethodPost}}, "k"
	return c
}

// granting is a worker that permits every change, and keeps the last result.
type granting struct {
	NoWorker
	result Result
}

func (g *granting) Intend(context.Context, Change) (func(Result), error) {
	return func(r Result) { g.result = r }, nil
}

// TestRemember checks that decodeAnswer returns the answer that encodeAnswer
// has encoded. A message that is too long must be truncated. Bytes that are not
// an encoded answer must be refused.
func TestRemember(t *testing.T) {
	for _, s := range []*model.Submitted{
		{StepID: model.StepID{JobID: 1}},
		{StepID: model.StepID{JobID: 7, SLUID: 1 << 63, Step: model.Some[uint32](0xfffffffb), HetComponent: model.Some[uint32](0)}, ErrorCode: 2045, UserMessage: "lua: ü\n"},
	} {
		if d := cmp.Diff(s, decodeAnswer(encodeAnswer(s))); d != "" {
			t.Error(d)
		}
	}
	long := encodeAnswer(&model.Submitted{StepID: model.StepID{JobID: 7}, UserMessage: strings.Repeat("\x01ü", 4000)})
	if got := decodeAnswer(long); len(long) > keystate.MaxAnswer || got == nil || len(got.UserMessage) < 200 {
		t.Errorf("%d bytes, %+v", len(long), got)
	}
	for _, bad := range []string{"", "{}", `{"v":2,"job":7}`, `{"v":1}`, `{"v":1,"job":-1}`} {
		if s := decodeAnswer([]byte(bad)); s != nil {
			t.Errorf("%s is %+v", bad, s)
		}
	}
	if _, err := SubmitOnce(keyedCall(answered{}), nil, nil); FailureResult(err).Code != errs.OutcomeUnknown {
		t.Error(err)
	}
}

// answered is a worker that returns for every key a stored answer that can't be
// decoded.
type answered struct{ NoWorker }

func (answered) Intend(context.Context, Change) (func(Result), error) {
	return nil, &KeyError{State: keystate.Answered, Answer: []byte("?")}
}
