package ipc

import "strings"

// Ready reports that the process attributes are as expected, that the sandbox
// is active and was tested, and that the process serves. The fields are those
// of sandbox.Layers.
type Ready struct {
	Filter   bool
	Audit    bool
	Landlock uint8
	Denies   uint8
}

func (r *Ready) Walk(w *Walker) { w.Fields(&r.Filter, &r.Audit, &r.Landlock, &r.Denies) }

// MaxReason is the maximum length, in bytes, of the Reason in a message.
const MaxReason = 1024

// Refused reports that the process will not serve, and why. The process wrote
// the text, so the parent shortens and escapes it before it reaches a log.
type Refused struct{ Reason string }

// TruncateReason returns at most MaxReason bytes of reason, without invalid
// UTF-8.
func TruncateReason(reason string) string {
	return strings.ToValidUTF8(reason[:min(len(reason), MaxReason)], "")
}

func (r *Refused) Walk(w *Walker) { w.Text(MaxReason, &r.Reason) }
