package broker

import (
	"context"
	"errors"
	"maps"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/auth"
	"schedrestd/handlers"
	"schedrestd/internal/errs"
	"schedrestd/internal/limit"
	"schedrestd/internal/rate"
	"schedrestd/internal/semaphore"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
)

// Outputs stands for the processes that read output files, each as one user: as the
// user of this process, or, if there is a keeper, as the users of tokens that the
// keeper has verified. The dispatcher starts each of them at the first question. It
// implements handlers.OutputFiles.
type Outputs struct {
	send  func(ipc.Message, ...int) error // to the dispatcher
	parts *semaphore.Semaphore[string]    // a place is a question
	bytes *rate.Buckets[string]           // how many bytes users read
	now   func() time.Time

	own    *Output // of the user of this process
	keeper *Keeper // nil: only own is used

	mu    sync.Mutex // guards users, and the fields asked and client of all of them
	users map[uint32]*Output
}

// An Output stands for the process that reads output files of one user. It
// implements handlers.UserFiles.
type Output struct {
	*Outputs
	uid     uint32
	service *service
	client  uint64         // the keeper's number for the user; 0 for the user of this process
	asked   *startOfOutput // the question to the dispatcher that is not answered yet
}

// A startOfOutput is a question to the dispatcher for the process. Its err is
// valid when done is closed.
type startOfOutput struct {
	client uint64
	done   chan struct{}
	err    error
}

// outputTimeout is how long a client waits for a part of a file. It is longer
// than a network file system needs that is only slow.
const outputTimeout = 10 * time.Second

var (
	errOutputHangs = errs.New(errs.Timeout, "the file system did not answer within %s", outputTimeout).WithHint("try again later; other requests are not affected")
	errOutputBusy  = errs.New(errs.Unavailable, "too many files are being read, or a file system does not answer").WithHint("try again later")
	errNoStart     = errs.New(errs.Unavailable, "the process that reads output did not start in time").WithHint("try again later")
)

func newOutputs(uid uint32, send func(ipc.Message, ...int) error) *Outputs {
	o := &Outputs{send: send, now: time.Now, users: map[uint32]*Output{},
		parts: semaphore.New[string](limit.OutputParts), bytes: rate.NewBuckets[string](limit.OutputBytes)}
	o.own = o.of(uid, 0)
	return o
}

// of returns what reads files as a user. The keeper's number for the user may be
// newer than when it was last needed.
func (o *Outputs) of(uid uint32, client uint64) *Output {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.users) >= maxOutputUsers {
		maps.DeleteFunc(o.users, func(_ uint32, user *Output) bool {
			return user != o.own && user.service.isClosed() && user.asked == nil
		})
	}
	user := o.users[uid]
	if user == nil {
		user = &Output{Outputs: o, uid: uid, service: newService(ipc.Output)}
		o.users[uid] = user
	}
	user.client = client
	return user
}

// maxOutputUsers is the number of users above which those without a process are
// forgotten.
const maxOutputUsers = 256

// Of returns what reads files as the user of a request. With a keeper, it asks the
// keeper who this is, and so whether the token is still accepted.
func (o *Outputs) Of(ctx context.Context, c auth.Credential) (handlers.UserFiles, error) {
	if o.keeper == nil {
		return o.own, nil
	}
	user, err := o.vouchFor(ctx, c)
	if err != nil {
		return nil, err
	}
	return &tokenFiles{user, c, o.now()}, nil
}

// tokenFiles reads files as the user of a token, for as long as the keeper vouches for
// the user.
type tokenFiles struct {
	*Output
	credential auth.Credential
	vouched    time.Time
}

// vouchInterval is the time after which the keeper is asked again. The parent ends a
// process for whose user the keeper has not vouched for some minutes.
const vouchInterval = 20 * time.Second

// ReadOutput is like that of Output. A request that takes long, which follows a file or
// downloads a large one, ends when the token is no longer accepted.
func (t *tokenFiles) ReadOutput(ctx context.Context, part handlers.OutputPart) (handlers.OutputData, error) {
	if now := t.now(); now.Sub(t.vouched) >= vouchInterval {
		user, err := t.vouchFor(ctx, t.credential)
		switch {
		case err == nil:
			t.Output, t.vouched = user, now
		case errs.KindOf(err) != errs.Unavailable: // otherwise the process still runs
			return handlers.OutputData{}, err
		}
	}
	return t.Output.ReadOutput(ctx, part)
}

func (o *Outputs) vouchFor(ctx context.Context, c auth.Credential) (*Output, error) {
	signature, gateway, ok := c.Signature()
	if !ok {
		return nil, errs.New(errs.Denied, "output is read only for users with a token")
	}
	client, uid, err := o.keeper.vouchFor(ctx, signature, gateway, c.ActAs)
	if err != nil {
		return nil, err
	}
	return o.of(uid, client), nil
}

// Owner returns the uid of the user.
func (o *Output) Owner() uint32 { return o.uid }

// ReadOutput asks the process for a part of a file. A user who reads much waits.
func (o *Output) ReadOutput(ctx context.Context, part handlers.OutputPart) (data handlers.OutputData, err error) {
	user := semaphore.KeyFrom(ctx)
	limited, cancel := context.WithTimeoutCause(ctx, outputTimeout, errOutputHangs)
	defer cancel()
	place, err := o.parts.Acquire(limited, user)
	if err != nil {
		return data, errs.Wrap(err, errs.Unavailable, "%s", errOutputBusy.Message)
	}
	answer, err := o.ask(limited, part)
	place.Release()
	if err != nil {
		return data, err
	}
	if err := explainOutput(answer); err != nil {
		return data, err
	}
	for n := float64(len(answer.Data)); n > 0; {
		wait := o.bytes.Take(o.now(), user, n)
		if wait == 0 {
			break
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return data, context.Cause(ctx)
		}
	}
	return handlers.OutputData{File: handlers.OutputFile{Device: answer.Device, Inode: answer.Inode}, Size: answer.Size, Offset: answer.Offset, Data: answer.Data}, nil
}

// ask sends a question to the process.
func (o *Output) ask(ctx context.Context, part handlers.OutputPart) (*query.OutputPart, error) {
	for again := false; ; again = true {
		l, err := o.connected(ctx)
		if err != nil {
			return nil, err
		}
		m, err := l.ask(ctx, l.channel.Send, func(id uint64) ipc.Message {
			return &query.ReadOutput{ID: id, Path: part.Path, Offset: part.Offset, Max: uint32(part.Max), Lines: part.Lines}
		})
		switch answer, ok := m.(*query.OutputPart); {
		case ok:
			return answer, nil
		case errors.Is(err, errGone) && !again: // the process has exited; the next one may read the file
			o.service.link.CompareAndSwap(l, nil)
		case errors.Is(err, errGone):
			return nil, errs.Wrap(err, errs.Unavailable, "the process that reads output has exited")
		default:
			return nil, err
		}
	}
}

// connected returns the channel to the process. If there is none, it asks the
// dispatcher for one.
func (o *Output) connected(ctx context.Context) (*link, error) {
	o.mu.Lock()
	l, start := o.service.link.Load(), o.asked
	if l == nil && start == nil {
		start = &startOfOutput{client: o.client, done: make(chan struct{})}
		question := &work.AskOutput{Client: o.client}
		if o.client != 0 {
			question.UID = o.uid
		}
		if err := o.send(question); err != nil {
			o.mu.Unlock()
			return nil, errs.Wrap(err, errs.Unavailable, "the dispatcher is not reached")
		}
		o.asked, o.users[o.uid] = start, o // it may have been forgotten
	}
	o.mu.Unlock()
	if l != nil {
		return l, nil
	}
	select {
	case <-start.done:
		if start.err != nil {
			return nil, start.err
		}
		if l := o.service.link.Load(); l != nil {
			return l, nil
		}
		return nil, errNoStart // it has already exited
	case <-ctx.Done():
		if context.Cause(ctx) == errOutputHangs {
			o.forget(start)
			return nil, errNoStart
		}
		return nil, context.Cause(ctx)
	}
}

// connect makes the descriptor fd the channel to the process that was asked for with
// the number client.
func (o *Outputs) connect(client uint64, fd int) error {
	user := o.asking(client)
	if user == nil { // the question was given up
		return unix.Close(fd)
	}
	err := user.service.connect(fd)
	user.settle(client, nil)
	return err
}

// refuse notes why there is no process.
func (o *Outputs) refuse(m *work.NoOutput) {
	if user := o.asking(m.Client); user != nil {
		user.settle(m.Client, errs.New(errs.Unavailable, "output can't be read at present: %s", m.Reason))
	}
}

// asking returns the Output that has asked for a process with a number, or nil.
func (o *Outputs) asking(client uint64) *Output {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, user := range o.users {
		if user.asked != nil && user.asked.client == client {
			return user
		}
	}
	return nil
}

// forget gives up a question to the dispatcher that was not answered, so that the next
// request asks again.
func (o *Output) forget(start *startOfOutput) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.asked == start {
		o.asked = nil
	}
}

// settle ends the question to the dispatcher.
func (o *Output) settle(client uint64, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.asked != nil && o.asked.client == client {
		o.asked.err = err
		close(o.asked.done)
		o.asked = nil
	}
}

// explainOutput returns an error if the process has not read the file. The errors
// name no path.
func explainOutput(p *query.OutputPart) error {
	switch p.State {
	case query.OutputRead:
		return nil
	case query.OutputMissing:
		return errs.New(errs.NotFound, "there is no such file on the gateway's machine").
			WithHint("the job could not create it, it was removed, or its file system is not mounted at the same path there")
	case query.OutputDenied:
		return errs.New(errs.Denied, "the user may not read the file, or not enter its directory")
	case query.OutputNoGroups:
		return errs.New(errs.Denied, "the user may not read the file, or not enter its directory").
			WithHint("it is read without supplementary groups: the user has none, or more than the %d that a process of the gateway can have", query.MaxGroups)
	case query.OutputNotRegular:
		return errs.New(errs.Denied, "it is not a regular file, and no other file is read")
	case query.OutputForeign:
		return errs.New(errs.Denied, "the file belongs to another user, and only the job's user's own files are read")
	case query.OutputUnsafe:
		return errs.New(errs.Denied, "a link of another user leads to the file, and such a link is not followed")
	}
	kind := errs.Unavailable
	switch syscall.Errno(p.Errno) {
	case syscall.EAGAIN:
		return errOutputBusy
	case syscall.ENAMETOOLONG, syscall.ELOOP: // trying again does not help
		kind = errs.NotFound
	}
	return errs.New(kind, "the file can't be read: %s", syscall.Errno(p.Errno).Error())
}
