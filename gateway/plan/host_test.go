package plan

import (
	"io"
	"log/slog"
	"os"

	"github.com/spf13/pflag"

	"schedrestd/become"
	"schedrestd/conf"
	"schedrestd/internal/guard"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
)

// A fakeHost opens files in place of the parent, and stores the Plan.
type fakeHost struct {
	files   []string
	plan    *query.WholePlan
	failure error
}

func (m *fakeHost) Open(path string) (*os.File, error) {
	f, _, err := guard.Open(path, guard.Configuration)
	m.files = append(m.files, path)
	return f, err
}

func (m *fakeHost) Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func (m *fakeHost) OpenAccounts(path string) (*os.File, error) {
	f, _, err := guard.Open(path, guard.Accounts)
	return f, err
}

func (m *fakeHost) OpenWorker() (*os.File, error) { return os.Open("/proc/self/exe") }

func (m *fakeHost) CheckTrust(owners, groups []uint32) error {
	return guard.CheckFiles(m.files, guard.Configuration, guard.Trust{PrivateGroup: become.PrivateGroup, Owners: append([]uint32{}, owners...), Groups: groups})
}

func (m *fakeHost) Send(plan *query.WholePlan) error {
	m.plan = plan
	return nil
}

func (m *fakeHost) SendFailure(err error) error {
	m.failure = err
	return nil
}

// startHere returns the ConfigSetup for a start by this process.
func startHere() ipc.ConfigSetup {
	dir, _ := os.Getwd()
	return ipc.ConfigSetup{Root: os.Geteuid() == 0, Directory: dir}
}

// runHere runs the command on this machine.
func runHere(args []string, out, errOut io.Writer) int {
	return runCommand(new(fakeHost), startHere(), args, out, errOut)
}

// optionsHere returns the options if nothing is set.
func optionsHere() options {
	o := options{host: new(fakeHost), start: startHere()}
	o.AddFlags(pflag.NewFlagSet("schedrestd", pflag.ContinueOnError))
	return o
}

// readConfiguration reads the configuration at path.
func readConfiguration(path string, log *slog.Logger) (*conf.Cluster, error) {
	p := planner{source: source{o: optionsHere(), path: path, log: log}}
	return p.configuration()
}

// defaultPaths replaces the usual paths of the configuration, and returns the
// previous ones.
func defaultPaths(paths []string) (previous []string) {
	previous, conf.DefaultPaths = conf.DefaultPaths, paths
	return previous
}
