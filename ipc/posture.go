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

// Map is the posture as security has it.
func (p *Posture) Map() map[string]string {
	m := map[string]string{}
	for _, f := range p.Facts {
		m[f.Name] = f.Value
	}
	return m
}

// HearBirth takes the two messages that come before everything else, a setup and the posture to expect. The
// book has them in this order.
func HearBirth[S Message](c *Channel) (setup S, expect *Posture, err error) {
	for expect == nil {
		m, err := c.Receive()
		if err != nil {
			return setup, nil, err
		}
		switch m := m.Message.(type) {
		case S:
			setup = m
		case *Posture:
			expect = m
		}
	}
	return setup, expect, nil
}
