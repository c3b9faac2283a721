package ipc

// Fact is one process attribute and the value that it must have.
type Fact struct {
	Name  string // as "uid" or "cap_effective"
	Value string // as the kernel shows it
}

const (
	maxFacts     = 64
	maxFactName  = 32
	maxFactValue = 1024 // many supplementary groups of an unprivileged start
)

// Attributes has the attributes that a process must find when it asks the kernel about
// itself. Package security defines the names and values.
type Attributes struct {
	Facts []Fact
}

func (p *Attributes) Walk(w *Walker) {
	List(w, &p.Facts, maxFacts, 4, func(f *Fact) {
		w.Text(maxFactName, &f.Name)
		w.Text(maxFactValue, &f.Value)
	})
}
