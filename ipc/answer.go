package ipc

import "strings"

// Ready says that the posture is as expected, that the cage is closed and proven, and that the process serves.
// How the cage is closed is for security.Sealed to tell; here it only travels.
type Ready struct {
	Filter   bool
	Audit    bool
	Landlock uint8
	Denies   uint8
}

func (r *Ready) Walk(w *Walker) { w.Fields(&r.Filter, &r.Audit, &r.Landlock, &r.Denies) }

// maxReason bounds what a worker may give as its reason, in bytes.
const maxReason = 1024

// Refused says that the process will not serve, and why. The text is that process's:
// the parent caps and escapes it before it reaches a log.
type Refused struct{ Reason string }

// Refuse is a Refused with reason, cut to what fits.
func Refuse(reason string) *Refused {
	return &Refused{Reason: strings.ToValidUTF8(reason[:min(len(reason), maxReason)], "")}
}

func (r *Refused) Walk(w *Walker) { w.Text(maxReason, &r.Reason) }
