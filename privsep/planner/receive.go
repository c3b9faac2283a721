package planner

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"schedrestd/become"
	"schedrestd/internal/errs"
	"schedrestd/internal/guard"
	"schedrestd/ipc"
	"schedrestd/privsep/spawn"
	"schedrestd/security"
)

// maxFileRequests limits how many files schedrestd-config may ask for. A site
// may have one file for each rack.
const maxFileRequests = 10_000

// receivePlan sends schedrestd-config the facts that it needs, and answers its
// questions until the Plan is complete.
func (p *Planner) receivePlan(channel *ipc.Channel) (*ipc.PackedPlan, error) {
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
	d := fileOpener{root: p.setup.Root}
	var plan *ipc.PackedPlan
	for {
		m, err := channel.Receive()
		if err != nil {
			return nil, err
		}
		switch m := m.Message.(type) {
		case *ipc.OpenFile:
			err = d.sendFile(channel, m)
		case *ipc.CheckOwners:
			err = channel.Send(&ipc.CheckResult{Result: ipc.ResultOf(d.checkTrust(m))})
		case *ipc.PlanFailed:
			return nil, m.Err()
		case *ipc.Plan:
			if d.root && len(d.files) > d.checkedFiles {
				return nil, errs.New(errs.Internal, "%s sent a plan before its files were checked", configName)
			}
			plan = &ipc.PackedPlan{Plan: *m}
		case *ipc.PlanListen, *ipc.PlanSubuids:
			err = plan.Add(m)
		case *ipc.PlanSetup:
			return plan, plan.Add(m)
		default:
			err = ipc.Unhandled(m)
		}
		if err != nil {
			return nil, err
		}
	}
}

// fileOpener opens files for one run of schedrestd-config.
type fileOpener struct {
	root         bool
	requests     int
	files        []string // configuration files that were opened
	checkedFiles int      // how many of files were checked
}

// sendFile opens the file that m asks for, and sends the answer.
func (d *fileOpener) sendFile(channel *ipc.Channel, m *ipc.OpenFile) error {
	if d.requests++; d.requests > maxFileRequests {
		return errs.New(errs.Internal, "%s requested more than %d files", configName, maxFileRequests)
	}
	f, err := d.open(m)
	if f == nil {
		return channel.Send(&ipc.CheckResult{Result: ipc.ResultOf(err)})
	}
	defer f.Close()
	return channel.Send(&ipc.OpenedFD{}, int(f.Fd()))
}

// open opens the file that m asks for. For ipc.OpenNothing it only checks that
// the path exists, and returns no file.
func (d *fileOpener) open(m *ipc.OpenFile) (f *os.File, err error) {
	switch m.Purpose {
	case ipc.OpenConfiguration:
		if f, _, err = guard.Open(m.Path, guard.Configuration); err == nil {
			d.files = append(d.files, m.Path)
		}
	case ipc.OpenAccounts:
		f, _, err = guard.Open(m.Path, guard.Accounts)
	case ipc.OpenWorker:
		f, err = spawn.OpenProgram("worker", "", spawn.WorkerName, security.Identity{UID: become.Overflow, GID: become.Overflow}, d.root, become.Overflow)
	case ipc.OpenNothing:
		_, err = os.Lstat(m.Path)
	default:
		err = fmt.Errorf("open file of kind %d", m.Purpose)
	}
	return f, err
}

// checkTrust checks that only trusted users can change the configuration files
// that have been opened so far.
func (d *fileOpener) checkTrust(m *ipc.CheckOwners) error {
	trust := guard.Trust{PrivateGroup: become.PrivateGroup, Owners: append([]uint32{}, m.Owners...), Groups: m.Groups}
	err := guard.CheckFiles(d.files, guard.Configuration, trust)
	if err == nil {
		d.checkedFiles = len(d.files)
	}
	return err
}
