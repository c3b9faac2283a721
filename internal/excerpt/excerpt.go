// Package excerpt keeps the beginning of a text.
package excerpt

// A Buffer keeps the first Max bytes that are written to it. It discards the
// rest, so that the writer neither waits nor fails. It has no ReadFrom, with
// which io.Copy would bypass Max.
type Buffer struct {
	Max  int
	kept []byte
}

// Write keeps as much of p as there is room for.
func (b *Buffer) Write(p []byte) (int, error) {
	b.kept = append(b.kept, p[:min(len(p), b.Max-len(b.kept))]...)
	return len(p), nil
}

// String returns what is kept.
func (b *Buffer) String() string { return string(b.kept) }
