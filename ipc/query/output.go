package query

import "schedrestd/ipc"

const (
	maxOutputPath = 4095 // PATH_MAX without the final zero

	// MaxOutputPart is the maximum number of bytes of a file in an OutputPart.
	MaxOutputPart = 30_000
)

// ReadOutput asks for a part of the file at Path. If Lines is not 0, the part
// begins with the last but Lines line of the file, and Offset has no effect.
type ReadOutput struct {
	ID     uint64 // chosen by the worker and repeated in the answer
	Path   string // absolute
	Offset uint64 // of the part's first byte
	Max    uint32 // maximum number of bytes; 0 asks only about the file
	Lines  uint32
}

func (r *ReadOutput) Walk(w *ipc.Walker) {
	w.Fields(&r.ID)
	w.Text(maxOutputPath, &r.Path)
	w.Fields(&r.Offset, &r.Max, &r.Lines)
}

// OutputState is whether a file can be read.
type OutputState uint8

// The states.
const (
	OutputRead       OutputState = iota // the answer has the part
	OutputMissing                       // there is no such file
	OutputDenied                        // the user may not read it, or may not enter its directory
	OutputNoGroups                      // like OutputDenied, and the process has no supplementary group that could permit it
	OutputNotRegular                    // it is not a regular file, or the kernel makes it up (/proc, /sys)
	OutputForeign                       // it belongs to another user
	OutputUnsafe                        // a link of another user leads to it
	OutputFailed                        // another error, whose number is in Errno
)

// String returns the state's name in logs.
func (s OutputState) String() string {
	return ipc.Word(s, "read", "missing", "denied", "denied without groups", "not a regular file", "of another user", "behind a link of another user", "failed")
}

// OutputPart answers the ReadOutput with the same ID.
type OutputPart struct {
	ID            uint64
	State         OutputState
	Errno         uint32 // as in errno(3); 0 unless the State is OutputFailed
	Device, Inode uint64 // identify the file
	Size          uint64 // of the file, in bytes
	Offset        uint64 // of the part's first byte
	Data          []byte
}

func (p *OutputPart) Walk(w *ipc.Walker) {
	w.Fields(&p.ID)
	ipc.Enum(w, &p.State, "state", OutputRead, OutputFailed)
	w.Fields(&p.Errno, &p.Device, &p.Inode, &p.Size, &p.Offset)
	w.Blob(&p.Data, MaxOutputPart)
}
