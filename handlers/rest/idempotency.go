package rest

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"schedrestd/api"
	"schedrestd/internal/errs"
	"schedrestd/internal/keystate"
	"schedrestd/model"
)

// keyWait is how long a request waits for the end of another request with the
// same key.
const keyWait = 2 * time.Second

// ReadKey reads the request's Idempotency-Key, before the body is read. It
// returns an error if the key is invalid or can't be stored, because ignoring
// the key could submit a job twice.
func (q *request) ReadKey() error {
	values := q.r.Header.Values(api.HeaderKey)
	switch {
	case len(values) == 0:
		return nil
	case len(values) > 1:
		return errs.New(errs.Malformed, "more than one Idempotency-Key header")
	case values[0] == "" || len(values[0]) > api.MaxKey || strings.ContainsFunc(values[0], isUnprintable):
		return errs.New(errs.Malformed, "the Idempotency-Key header is invalid").
			WithHint("a key has 1 to %d printable ASCII characters", api.MaxKey)
	case !q.server.Worker.KeepsKeys():
		return errs.New(errs.Unsupported, "this gateway keeps no Idempotency-Key; nothing was submitted").
			WithHint("send the request without this header, or set SCHEDRESTD_IDEMPOTENCY_FILE for the gateway")
	}
	q.key = values[0]
	return nil
}

// Keyed reports whether the request has an Idempotency-Key, after ReadKey.
func (q *request) Keyed() bool { return q.key != "" }

func isUnprintable(r rune) bool { return r < ' ' || r > '~' }

// SubmitOnce is MakeChange for the submission of a job. If an earlier request
// with the same Idempotency-Key has already submitted the job, SubmitOnce
// returns the answer to that request instead. If another request with this key
// is in progress, SubmitOnce waits for it, but at most for keyWait.
func SubmitOnce(c *Call, do func() (*model.Submitted, error), describe func(*model.Submitted) Result) (*model.Submitted, error) {
	describeKeyed := func(s *model.Submitted) Result {
		result := describe(s)
		if c.key != "" {
			result.Answer = encodeAnswer(s)
		}
		return result
	}
	for pause := keyWait / 64; ; pause *= 2 {
		submitted, err := MakeChange(c, "", do, describeKeyed)
		e, ok := errors.AsType[*KeyError](err)
		switch {
		case !ok:
			return submitted, err
		case e.State != keystate.Running || pause > keyWait/2:
			return c.repeatAnswer(e)
		}
		select {
		case <-time.After(pause):
		case <-c.ctx.Done():
			return nil, c.ctx.Err()
		}
	}
}

// repeatAnswer returns the answer to the first request with the
// Idempotency-Key, or an error if this answer can't be repeated.
func (a *answer) repeatAnswer(e *KeyError) (*model.Submitted, error) {
	switch e.State {
	case keystate.Answered:
		if submitted := decodeAnswer(e.Answer); submitted != nil {
			a.Replayed()
			return submitted, nil
		}
	case keystate.Running:
		e := errs.New(errs.Conflict, "a request with this Idempotency-Key is being answered").
			WithHint("send the same request again in a moment")
		e.Code = codeInProgress
		return nil, &RetryAfterError{e, time.Second}
	case keystate.Mismatch:
		return nil, KeyReused()
	case keystate.Full:
		full := errs.New(errs.Unavailable, "the Idempotency-Key can't be kept now; nothing was submitted")
		full.Err = e.Cause
		return nil, full
	}
	return nil, OutcomeUnknown()
}

// OutcomeUnknown returns the error of a request with an Idempotency-Key if an earlier one may
// have submitted a job.
func OutcomeUnknown() *errs.Error {
	e := errs.New(errs.BadAnswer, "the first request with this Idempotency-Key may have submitted a job; nothing more was submitted").
		WithHint("look for the job; to submit another one use a new key")
	e.Code = errs.OutcomeUnknown
	return e
}

// KeyReused returns the error of a request with the Idempotency-Key of a different one.
func KeyReused() *errs.Error {
	e := errs.New(errs.Invalid, "the Idempotency-Key belongs to a different request; nothing was submitted").
		WithHint("use a new key for each job").WithSource(api.HeaderKey)
	e.Code = codeKeyReused
	return e
}

// SearchedKey returns the request's Idempotency-Key if the job of an earlier request with
// it must be looked for in the cluster, and otherwise nil.
func (q *request) SearchedKey() *KeyClaim {
	if !q.server.SearchKeys {
		return nil
	}
	return q.keyClaim()
}

// Replayed tells the client that the answer is about the job of an earlier request.
func (a *answer) Replayed() { a.w.Header().Set(api.HeaderReplayed, "true") }

// keyClaim returns the request's Idempotency-Key for the auditor, or nil if it
// has none.
func (q *request) keyClaim() *KeyClaim {
	if q.key == "" {
		return nil
	}
	user := fmt.Sprintf("uid %d", q.client.UID)
	if !q.client.Local {
		user = fmt.Sprintf("user %q as %q", q.client.Claims.User, q.client.ActAs)
	}
	return &KeyClaim{Key: sha256.Sum256(fmt.Appendf(nil, "%s %s", user, q.key)), User: sha256.Sum256([]byte(user)), Body: q.requestHash, Search: q.server.SearchKeys}
}

// storedAnswer is the form in which answers are stored. It must stay readable
// by other releases of the gateway.
type storedAnswer struct {
	Version int     `json:"v"`
	Job     uint32  `json:"job"`
	SLUID   uint64  `json:"sluid,omitempty"`
	Step    *uint32 `json:"step,omitempty"`
	Het     *uint32 `json:"het,omitempty"`
	Code    uint32  `json:"code,omitempty"`
	Message string  `json:"msg,omitempty"`
}

const storedVersion = 1

// encodeAnswer returns s as a stored answer. It truncates a message that is too
// long.
func encodeAnswer(s *model.Submitted) []byte {
	k := storedAnswer{Version: storedVersion, Job: s.StepID.JobID, SLUID: s.StepID.SLUID,
		Code: s.ErrorCode, Message: s.UserMessage}
	if s.StepID.Step.Set {
		k.Step = &s.StepID.Step.Number
	}
	if s.StepID.HetComponent.Set {
		k.Het = &s.StepID.HetComponent.Number
	}
	for {
		b, err := json.Marshal(k)
		if err == nil && len(b) <= keystate.MaxAnswer {
			return b
		}
		k.Message = strings.ToValidUTF8(k.Message[:len(k.Message)*3/4], "")
	}
}

// decodeAnswer decodes a stored answer. It returns nil if b is not a stored
// answer.
func decodeAnswer(b []byte) *model.Submitted {
	var k storedAnswer
	if err := json.Unmarshal(b, &k); err != nil || k.Version != storedVersion || k.Job == 0 {
		return nil
	}
	s := &model.Submitted{StepID: model.StepID{JobID: k.Job, SLUID: k.SLUID}, ErrorCode: k.Code, UserMessage: k.Message}
	if k.Step != nil {
		s.StepID.Step = model.Some(*k.Step)
	}
	if k.Het != nil {
		s.StepID.HetComponent = model.Some(*k.Het)
	}
	return s
}
