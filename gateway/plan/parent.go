package plan

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"schedrestd/internal/errs"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
)

// A host performs the operations that this process requests from its parent,
// such as opening files.
type host interface {
	Open(path string) (*os.File, error)
	// Exists asks the parent whether path exists. The parent's user may see
	// files that this process's user can't.
	Exists(path string) bool
	// OpenAccounts opens /etc/passwd, or a file with ranges of uids such as
	// /etc/subuid.
	OpenAccounts(path string) (*os.File, error)
	// OpenWorker opens the worker's program for execution.
	OpenWorker() (*os.File, error)
	// CheckTrust returns an error if an untrusted user or group can change one
	// of the opened configuration files. Root, the users in owners and the
	// groups in groups are trusted.
	CheckTrust(owners, groups []uint32) error
	// Send sends a Plan to the parent. After that, no file can be opened.
	Send(*query.WholePlan) error
	// SendFailure sends the reason why there is no Plan.
	SendFailure(error) error
}

// parent is a host that sends requests to the parent process over a channel.
type parent struct {
	channel *ipc.Channel
	start   ipc.ConfigSetup
}

// receiveSetup receives the setup and the environment variables that the parent
// sends at the start.
func (p *parent) receiveSetup() error {
	remaining := 1
	for hasSetup := false; remaining > 0; remaining-- {
		m, err := p.channel.Receive()
		if err != nil {
			return errs.Wrap(err, errs.Internal, "receive from schedrestd")
		}
		switch m := m.Message.(type) {
		case *ipc.ConfigSetup:
			p.start, hasSetup = *m, true
			remaining += int(m.Variables)
		case *ipc.Variable:
			name, value, _ := strings.Cut(m.Text, "=")
			if err := os.Setenv(name, value); err != nil {
				return errs.Wrap(err, errs.Invalid, "environment: %s", name)
			}
		default:
			return ipc.Unhandled(m)
		}
		if !hasSetup {
			return errors.New("environment received before the setup")
		}
	}
	return nil
}

// request sends a question and receives the answer. If the answer is positive
// but has no file, the returned file and error are both nil.
func (p *parent) request(question ipc.Message) (file *os.File, err error) {
	if err := p.channel.Send(question); err != nil {
		return nil, errs.Wrap(err, errs.Internal, "send to schedrestd")
	}
	m, err := p.channel.Receive()
	if err != nil {
		return nil, errs.Wrap(err, errs.Internal, "receive from schedrestd")
	}
	switch answer := m.Message.(type) {
	case *ipc.OpenedFD:
		return os.NewFile(uintptr(m.FDs[0]), "file"), nil
	case *ipc.CheckResult:
		if answer.OK {
			return nil, nil
		}
		return nil, &errs.Error{Kind: errs.Kind(answer.Class), Message: answer.Text, Hint: answer.Hint}
	default:
		return nil, ipc.Unhandled(answer)
	}
}

func (p *parent) open(kind ipc.Purpose, path string) (*os.File, error) {
	f, err := p.request(&ipc.OpenFile{Purpose: kind, Path: path})
	if err == nil && f == nil {
		err = fmt.Errorf("open %s: schedrestd sent no file", path)
	}
	return f, err
}

func (p *parent) Open(path string) (*os.File, error) { return p.open(ipc.OpenConfiguration, path) }

func (p *parent) Exists(path string) bool {
	_, err := p.request(&ipc.OpenFile{Purpose: ipc.OpenNothing, Path: path})
	return err == nil
}

func (p *parent) OpenAccounts(path string) (*os.File, error) { return p.open(ipc.OpenAccounts, path) }

func (p *parent) OpenWorker() (*os.File, error) { return p.open(ipc.OpenWorker, "") }

func (p *parent) CheckTrust(owners, groups []uint32) error {
	_, err := p.request(&ipc.CheckOwners{Owners: owners, Groups: groups})
	return err
}

func (p *parent) Send(plan *query.WholePlan) error {
	return errs.Wrap(query.SendPlan(p.channel, plan), errs.Invalid, "send the plan to schedrestd")
}

func (p *parent) SendFailure(err error) error {
	return p.channel.Send(&ipc.PlanFailed{Failure: ipc.FailureOf(err)})
}
