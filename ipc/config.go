package ipc

// Bounds of what schedrestd-config and the parent send each other, in bytes.
const (
	maxPath     = 4095 // a path, as the kernel's PATH_MAX
	maxVariable = 12 << 10
	maxCause    = 6 << 10 // an error's text; its hint has the same bound
	maxOwners   = 8
)

// ConfigSetup is the parent's first message to schedrestd-config.
type ConfigSetup struct {
	Root      bool   // the parent is root: it judges files strictly, and can become other users
	Passed    bool   // listening sockets were passed to the parent
	Terminal  bool   // the parent's standard input is a terminal
	Again     bool   // a reload: NoPlan carries the error instead of standard error
	Directory string // the parent's working directory; "" when it has no name
	Variables uint16 // how many environment variables follow
}

// Kind is KindConfigSetup.
func (*ConfigSetup) Kind() Kind { return KindConfigSetup }

func (s *ConfigSetup) walk(w *walker) {
	w.version()
	w.flag(&s.Root)
	w.flag(&s.Passed)
	w.flag(&s.Terminal)
	w.flag(&s.Again)
	w.text(&s.Directory, maxPath)
	w.u16(&s.Variables)
}

// Variable is one environment variable, as NAME=value. It is sent rather than
// inherited because everyone can read the arguments and the environment of
// package stage.
type Variable struct{ Text string }

// Kind is KindVariable.
func (*Variable) Kind() Kind { return KindVariable }

func (v *Variable) walk(w *walker) { w.text(&v.Text, maxVariable) }

// Opening is the reason to open a file, which decides how it is judged.
type Opening uint8

// The reasons.
const (
	OpenConfiguration Opening = iota + 1 // a configuration file
	OpenAccounts                         // a list of uids that root alone may change
	OpenWorker                           // the worker's program, to execute it; its path is the parent's to know
	OpenNothing                          // report whether the path exists
)

// OpenFile asks the parent to open a file. OpenedFD or Judgement answers it.
type OpenFile struct {
	What Opening
	Path string
}

// Kind is KindOpenFile.
func (*OpenFile) Kind() Kind { return KindOpenFile }

func (o *OpenFile) walk(w *walker) {
	enum(w, &o.What, "opening", OpenConfiguration, OpenNothing)
	w.text(&o.Path, maxPath)
}

// OpenedFD carries the file that OpenFile asked for.
type OpenedFD struct{}

// Kind is KindOpenedFD.
func (*OpenedFD) Kind() Kind { return KindOpenedFD }

func (*OpenedFD) walk(*walker) {}

// Judge asks the parent to judge every configuration file that it has opened for
// this process: each must belong to root or to one of Owners, and nobody else but
// Groups may change it. Judgement answers it.
type Judge struct {
	Owners []uint32
	Groups []uint32
}

// Kind is KindJudge.
func (*Judge) Kind() Kind { return KindJudge }

func (j *Judge) walk(w *walker) {
	list(w, &j.Owners, maxOwners, 4, func(id *uint32) { w.u32(id) })
	list(w, &j.Groups, maxOwners, 4, func(id *uint32) { w.u32(id) })
}

// Failure is an error as it crosses a channel.
type Failure struct {
	Class uint8 // an errs.Kind
	Text  string
	Hint  string
}

func (f *Failure) walk(w *walker) {
	w.u8(&f.Class)
	w.text(&f.Text, maxCause)
	w.text(&f.Hint, maxCause)
}

// Fail returns a Failure of these texts, shortened to what one message can carry.
func Fail(class uint8, text, hint string) Failure {
	return Failure{class, text[:min(len(text), maxCause)], hint[:min(len(hint), maxCause)]}
}

// Judgement answers OpenFile and Judge without a file.
type Judgement struct {
	OK bool // the path exists; the files are acceptable
	Failure
}

// Kind is KindJudgement.
func (*Judgement) Kind() Kind { return KindJudgement }

func (v *Judgement) walk(w *walker) {
	w.flag(&v.OK)
	v.Failure.walk(w)
}

// NoPlan says why a reload has no Plan.
type NoPlan struct{ Failure }

// Kind is KindNoPlan.
func (*NoPlan) Kind() Kind { return KindNoPlan }

func (n *NoPlan) walk(w *walker) { n.Failure.walk(w) }
