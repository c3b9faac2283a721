package rest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
	"schedrestd/internal/keystate"
	"schedrestd/model"
)

// TestIdempotencyKeyPanics checks that the outcome of a submission that panics
// is stored as unknown.
func TestIdempotencyKeyPanics(t *testing.T) {
	var got keystate.State
	func() {
		defer func() { _ = recover() }()
		_, _ = submitAndSettle(func(s keystate.State, _ []byte) { got = s }, func() (*model.Submitted, error) { panic("x") })
	}()
	if got != keystate.Unknown {
		t.Errorf("state %d", got)
	}
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
	if _, err := SubmitOnce(&Call{key: "k", server: NewServer(Service{}, Config{Keys: answered{}})}, nil); FailureResult(err).Code != errs.OutcomeUnknown {
		t.Error(err)
	}
}

// answered implements Keys. For every key, it returns a stored answer that
// can't be decoded.
type answered struct{}

func (answered) Claim(context.Context, KeyClaim) (keystate.State, []byte, func(keystate.State, []byte), error) {
	return keystate.Answered, []byte("?"), func(keystate.State, []byte) { panic(errors.New("settled")) }, nil
}
