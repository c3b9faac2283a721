package rest

import (
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Answers are compressed if the client accepts a content coding. Lists of jobs
// shrink to a tenth.
//
// Compression is safe here. An attacker who controls a part of a request can
// measure the length of the compressed answer, but this length reveals nothing:
// no answer contains a secret that its client does not know. Tokens are removed
// from jobs' environments, and headers are never echoed.

const identity = "identity" // without compression

// codings are the supported content codings. The preferred one is first.
var codings = []string{"zstd", "gzip"}

// minCodedSize is the minimum length of a body that is compressed. A shorter
// body fits into one packet anyway.
const minCodedSize = 1 << 10

// chosenCoding is the content coding of an answer.
type chosenCoding struct {
	name   string // "" for identity
	always bool   // the client does not accept identity, so small bodies are compressed too
}

// chooseCoding returns the content coding that the client prefers, according to
// Accept-Encoding (RFC 9110, 12.5.3). If the header is missing, or allows none
// of our codings, the answer is not compressed. If the client does not accept
// an uncompressed answer either, ok is false.
func chooseCoding(prefs []preference) (c chosenCoding, ok bool) {
	bestQuality := 0
	for _, name := range codings {
		if q, listed := codingQuality(prefs, name); listed && q > bestQuality {
			c.name, bestQuality = name, q
		}
	}
	plain, listed := codingQuality(prefs, identity)
	switch {
	case listed && plain == 0:
		c.always = true
		return c, c.name != ""
	case listed && plain > bestQuality:
		c.name = ""
	}
	return c, true
}

// codingQuality returns the weight of a coding. If nothing in prefs applies to
// the coding, listed is false. A "*" applies to every coding that is not listed
// by name. To the coding "identity", it applies only if the weight of the "*"
// is 0.
func codingQuality(prefs []preference, name string) (q int, listed bool) {
	alias := "x-" + name // x-gzip is gzip (RFC 9110, 8.4.1.3)
	for _, p := range prefs {
		if p.name == name || p.name == alias {
			q, listed = max(q, p.quality), true
		}
	}
	for _, p := range prefs {
		if p.name == "*" && !listed && (name != identity || p.quality == 0) {
			return p.quality, true
		}
	}
	return q, listed
}

// coder compresses the bytes written to it.
type coder interface {
	io.WriteCloser
	Reset(io.Writer)
}

// coders keeps the coders of each coding for reuse, because creating a coder
// costs more than compressing a small answer.
var coders = map[string]*sync.Pool{
	"gzip": {New: func() any {
		w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
		if err != nil {
			panic(err) // the level is a constant
		}
		return w
	}},
	// This encoder has no goroutines of its own, and compresses one answer at a
	// time. Its window is so small that even a phone has enough memory for it.
	"zstd": {New: func() any {
		w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
			zstd.WithWindowSize(256<<10), zstd.WithLowerEncoderMem(true))
		if err != nil {
			panic(err) // the options are constants
		}
		return w
	}},
}

// getCoder takes a coder from the pool and makes it write to w.
func getCoder(name string, w io.Writer) coder {
	z := coders[name].Get().(coder)
	z.Reset(w)
	return z
}

// putCoder puts a coder back into the pool, whatever its state.
func putCoder(name string, z coder) {
	z.Reset(nil)
	coders[name].Put(z)
}
