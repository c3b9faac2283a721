package ipc

// Fact is one line of a posture: what is measured, and the value it must have.
type Fact struct {
	Name  string // as "uid" or "cap_effective"
	Value string // as the kernel shows it
}

const (
	maxFacts     = 64
	maxFactName  = 32
	maxFactValue = 1024 // many supplementary groups of an unprivileged start
)

// Posture is what the worker must find when it asks the kernel about itself. The
// names and values are security's; here they only travel.
type Posture struct {
	Facts []Fact
}

// Kind is KindPosture.
func (*Posture) Kind() Kind { return KindPosture }

func (p *Posture) walk(w *walker) {
	list(w, &p.Facts, maxFacts, 4, func(f *Fact) {
		w.text(&f.Name, maxFactName)
		w.text(&f.Value, maxFactValue)
	})
}
