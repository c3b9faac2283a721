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

// Posture is what a process must find when it asks the kernel about itself. The
// names and values are security's; here they only travel.
type Posture struct {
	Facts []Fact
}

func (p *Posture) Walk(w *Walker) {
	List(w, &p.Facts, maxFacts, 4, func(f *Fact) {
		w.Text(maxFactName, &f.Name)
		w.Text(maxFactValue, &f.Value)
	})
}
