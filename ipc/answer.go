package ipc

import "strings"

// Ready says that the posture is as expected, that the cage is closed and proven, and that the process serves.
type Ready struct {
	Sealed string // what the kernel has of the cage, for the log; as "seccomp, Landlock 7 (files, TCP)"
}

// Kind is KindReady.
func (*Ready) Kind() Kind { return KindReady }

func (r *Ready) walk(w *walker) { w.text(&r.Sealed, maxName) }

// maxReason bounds what a worker may give as its reason, in bytes.
const maxReason = 1024

// Refused says that the worker will not serve, and why. The text is the worker's:
// the parent caps and escapes it before it reaches a log.
type Refused struct {
	Reason string
}

// Refuse is a Refused with reason, cut to what fits.
func Refuse(reason string) *Refused {
	return &Refused{Reason: strings.ToValidUTF8(reason[:min(len(reason), maxReason)], "")}
}

// Kind is KindRefused.
func (*Refused) Kind() Kind { return KindRefused }

func (r *Refused) walk(w *walker) { w.text(&r.Reason, maxReason) }
