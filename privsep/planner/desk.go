package planner

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"schedrestd/become"
	"schedrestd/errs"
	"schedrestd/guard"
	"schedrestd/ipc"
	"schedrestd/privsep/spawn"
	"schedrestd/security"
)

// mostQuestions is how many files schedrestd-config may ask for. A site may
// have one file for each rack.
const mostQuestions = 10_000

// converse sends schedrestd-config the facts that it needs, and answers its
// questions until the Plan is complete.
func (p *Planner) converse(channel *ipc.Channel) (*ipc.WholePlan, error) {
	if err := channel.Send(&p.setup); err != nil {
		return nil, io.EOF // the exit status says more
	}
	for _, v := range p.env[:p.setup.Variables] {
		if err := channel.Send(&ipc.Variable{Text: v}); err != nil {
			if _, ok := errors.AsType[*ipc.Violation](err); ok {
				name, _, _ := strings.Cut(v, "=")
				return nil, errs.New(errs.Invalid, "environment variable %s is too long", name)
			}
			return nil, io.EOF
		}
	}
	d := desk{root: p.setup.Root}
	var plan *ipc.WholePlan
	for {
		m, err := channel.Receive()
		if err != nil {
			return nil, err
		}
		switch m := m.Message.(type) {
		case *ipc.OpenFile:
			err = d.answer(channel, m)
		case *ipc.Judge:
			err = channel.Send(ipc.Judged(d.judge(m)))
		case *ipc.NoPlan:
			return nil, m.Err()
		case *ipc.Plan:
			if d.root && len(d.files) > d.judged {
				return nil, errs.New(errs.Internal, "%s sent a plan before its files were checked", configName)
			}
			plan = &ipc.WholePlan{Plan: *m}
		case *ipc.PlanListen, *ipc.PlanSubuids:
			err = plan.Add(m)
		case *ipc.PlanSetup:
			return plan, plan.Add(m)
		default:
			err = ipc.Unheard(m)
		}
		if err != nil {
			return nil, err
		}
	}
}

// desk opens files for one run of schedrestd-config.
type desk struct {
	root   bool
	asked  int
	files  []string // configuration files that were opened
	judged int      // how many of files were judged
}

// answer opens the file of m and sends the answer.
func (d *desk) answer(channel *ipc.Channel, m *ipc.OpenFile) error {
	if d.asked++; d.asked > mostQuestions {
		return errs.New(errs.Internal, "%s requested more than %d files", configName, mostQuestions)
	}
	f, err := d.open(m)
	if f == nil {
		return channel.Send(ipc.Judged(err))
	}
	defer f.Close()
	return channel.Send(&ipc.OpenedFD{}, int(f.Fd()))
}

// open opens the file that m asks for. For ipc.OpenNothing it only checks that
// the path exists, and returns no file.
func (d *desk) open(m *ipc.OpenFile) (f *os.File, err error) {
	switch m.What {
	case ipc.OpenConfiguration:
		if f, _, err = guard.Open(m.Path, guard.Configuration); err == nil {
			d.files = append(d.files, m.Path)
		}
	case ipc.OpenAccounts:
		f, _, err = guard.Open(m.Path, guard.Accounts)
	case ipc.OpenWorker:
		f, err = spawn.OpenWorker("", security.Identity{UID: become.Overflow, GID: become.Overflow}, d.root)
	case ipc.OpenNothing:
		_, err = os.Lstat(m.Path)
	default:
		err = fmt.Errorf("open file of kind %d", m.What)
	}
	return f, err
}

// judge checks that only trusted users can change the configuration files that
// were opened so far.
func (d *desk) judge(m *ipc.Judge) error {
	trust := guard.Trust{Private: become.PrivateGroup, Owners: append([]uint32{}, m.Owners...), Groups: m.Groups}
	err := guard.Judge(d.files, guard.Configuration, trust)
	if err == nil {
		d.judged = len(d.files)
	}
	return err
}
