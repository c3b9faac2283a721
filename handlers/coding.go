package handlers

import (
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Answers are compressed when the client says that it can read them so: lists of jobs shrink to
// a tenth. No answer has a secret in it that the one who asks does not know already (tokens
// are taken out of jobs' environments, and no header is ever echoed), so that nothing can be guessed from an
// answer's length while part of the question is chosen by somebody else.

const identity = "identity" // not compressed

// codings are the content codings, the favourite first.
var codings = []string{"zstd", "gzip"}

// worthCoding is from which size on a body is compressed. Below it fits a packet anyway.
const worthCoding = 1 << 10

// chosenCoding is how an answer's body travels.
type chosenCoding struct {
	name   string // "" is identity
	always bool   // the client does not take identity: small bodies are compressed too
}

// chooseCoding reads what Accept-Encoding says (RFC 9110, 12.5.3): without it, or when it
// speaks of none of ours, nothing is compressed. ok is false when even that is forbidden.
func chooseCoding(prefs []preference) (c chosenCoding, ok bool) {
	most := 0
	for _, name := range codings {
		if q, said := codingQuality(prefs, name); said && q > most {
			c.name, most = name, q
		}
	}
	plain, said := codingQuality(prefs, identity)
	switch {
	case said && plain == 0:
		c.always = true
		return c, c.name != ""
	case said && plain > most:
		c.name = ""
	}
	return c, true
}

func codingQuality(prefs []preference, name string) (q int, said bool) {
	alias := "x-" + name // x-gzip is gzip (RFC 9110, 8.4.1.3)
	for _, p := range prefs {
		if p.name == name || p.name == alias {
			q, said = max(q, p.quality), true
		}
	}
	for _, p := range prefs {
		if p.name == "*" && !said && (name != identity || p.quality == 0) {
			return p.quality, true
		}
	}
	return q, said
}

// coder compresses what is written to it.
type coder interface {
	io.WriteCloser
	Reset(io.Writer)
}

// coders are kept for the next answer: to make one costs more than a small answer.
var coders = map[string]*sync.Pool{
	"gzip": {New: func() any {
		w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
		if err != nil {
			panic(err) // the level is a constant
		}
		return w
	}},
	// One at a time without goroutines of its own, and a window that a phone can hold.
	"zstd": {New: func() any {
		w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
			zstd.WithWindowSize(256<<10), zstd.WithLowerEncoderMem(true))
		if err != nil {
			panic(err) // the options are constants
		}
		return w
	}},
}

// coded is a coder out of the pool, to w.
func coded(name string, w io.Writer) coder {
	z := coders[name].Get().(coder)
	z.Reset(w)
	return z
}

// release gives a coder back, whatever state it is in.
func release(name string, z coder) {
	z.Reset(nil)
	coders[name].Put(z)
}
