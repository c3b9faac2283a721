package codec

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"schedrestd/internal/errs"
	"schedrestd/model"
)

// noVal32 is the length that stands for a null bit string, and the count that
// stands for a null list.
const noVal32 = math.MaxUint32 - 1

// String encodes or decodes a length, followed by that many bytes, the last of
// which is a NUL. Null (length 0) and empty text (length 1) are both "" in
// memory, and "" is sent as null. The bytes need not be UTF-8, and are kept
// unchanged.
func (c *Codec) String(name string, v *string) {
	switch c.mode {
	case encoding:
		c.putString(*v)
	case decoding:
		*v, _ = c.readText(name)
	case filling:
		*v = c.randomText()
	case describing:
		c.row(name, "str")
	}
}

// readText decodes a String, and reports whether it is set (not null).
func (c *Codec) readText(name string) (s string, set bool) {
	c.isText = true
	b := c.mem(name)
	c.isText = false
	if len(b) == 0 || c.skipping {
		return "", false
	}
	if b[len(b)-1] != 0 {
		c.Fail(name, ErrNoNUL)
		return "", false
	}
	return string(b[:len(b)-1]), true
}

// Text encodes or decodes a String that may be unset. An unset text is null on
// the wire.
func (c *Codec) Text(name string, v *model.Text) {
	switch {
	case c.mode == encoding && *v == model.Emptied:
		c.buf = append(c.buf, 0, 0, 0, 1, 0)
	case c.mode == decoding:
		*v = ""
		if s, set := c.readText(name); set {
			*v = model.SetText(s)
		}
	case c.mode == filling && c.rng.IntN(8) == 0:
		*v = model.Emptied
	default:
		s := string(*v)
		c.String(name, &s)
		*v = model.Text(s)
	}
}

// Element encodes or decodes an element of a list of texts. It is like String,
// but sends "" as empty text. In a filter, empty text selects records without a
// value. If "" were sent as null, Slurm's daemons would drop the element.
func (c *Codec) Element(v *string) {
	if c.mode == encoding && *v == "" {
		c.buf = append(c.buf, 0, 0, 0, 1, 0)
		return
	}
	c.String("", v)
}

// Characters of texts that the accounting daemon inserts into its SQL
// statements.
const (
	Digits       = "0123456789"                                                       // ids
	ClusterChars = Digits + "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-." // names of clusters, which are in the names of tables
)

// StringOf does the same as String, but the encoder fails if the text has a
// character that is not in chars. A decoder accepts every text.
func (c *Codec) StringOf(chars, name string, v *string) {
	c.checkChars(chars, name, *v)
	c.String(name, v)
	c.fillChars(chars, v)
}

// ElementOf does the same as Element, with the check of StringOf.
func (c *Codec) ElementOf(chars string, v *string) {
	c.checkChars(chars, "", *v)
	c.Element(v)
	c.fillChars(chars, v)
}

func (c *Codec) checkChars(chars, name, text string) {
	if c.mode == encoding && strings.Trim(text, chars) != "" {
		c.Fail(name, errs.New(errs.Invalid, "%.64q has a character that is not one of %s", text, chars))
	}
}

// fillChars replaces each byte of a random text by one of chars.
func (c *Codec) fillChars(chars string, v *string) {
	if c.mode != filling {
		return
	}
	text := []byte(*v)
	for i, b := range text {
		text[i] = chars[int(b)%len(chars)]
	}
	*v = string(text)
}

func (c *Codec) putString(s string) {
	if s == "" {
		c.buf = binary.BigEndian.AppendUint32(c.buf, 0)
		return
	}
	if len(s) > flushSize { // otherwise the fields after a long script would need a copy of it
		c.buf = slices.Grow(c.buf, len(s)+flushSize)
	}
	c.buf = binary.BigEndian.AppendUint32(c.buf, uint32(len(s)+1))
	c.buf = append(c.buf, s...)
	c.buf = append(c.buf, 0)
}

// Mem encodes or decodes a length, followed by that many bytes, without a NUL.
func (c *Codec) Mem(name string, v *[]byte) {
	switch c.mode {
	case encoding:
		c.buf = binary.BigEndian.AppendUint32(c.buf, uint32(len(*v)))
		c.buf = append(c.buf, *v...)
	case decoding:
		*v = append([]byte(nil), c.mem(name)...)
	case filling:
		*v = []byte(c.randomText())
	case describing:
		c.row(name, "mem")
	}
}

// mem decodes a length and returns a slice of that many bytes of the input.
func (c *Codec) mem(name string) []byte {
	b := c.read(name, 4)
	if b == nil {
		return nil
	}
	n := binary.BigEndian.Uint32(b)
	if uint64(n) > uint64(c.unread()) {
		c.Fail(name, ErrShort)
		return nil
	}
	return c.read(name, int(n))
}

// randomText returns 0 to 11 printable ASCII characters.
func (c *Codec) randomText() string {
	b := make([]byte, c.rng.IntN(12))
	for i := range b {
		b[i] = byte('!' + c.rng.IntN('~'-'!'))
	}
	return string(b)
}

// Bitmap encodes or decodes a number of bits, followed by a String that
// consists of "0x" and hexadecimal digits. The most significant digit comes
// first, and the last digit holds bits 0 to 3. If the number of bits is NO_VAL,
// the bitmap is null and no String follows.
func (c *Codec) Bitmap(name string, v *model.Bitmap) {
	switch c.mode {
	case encoding:
		if !v.Set {
			c.buf = binary.BigEndian.AppendUint32(c.buf, noVal32)
			return
		}
		c.buf = binary.BigEndian.AppendUint32(c.buf, v.Len)
		c.putString(hexBits(v))
	case decoding:
		c.readBitmap(name, v)
	case filling:
		*v = model.Bitmap{}
		if c.rng.IntN(4) > 0 {
			v.Set, v.Len = true, uint32(c.rng.IntN(20))
			v.Bits = make([]byte, (v.Len+7)/8)
			for i := range int(v.Len) {
				v.Bits[i/8] |= byte(c.rng.IntN(2)) << (i % 8)
			}
		}
	case describing:
		c.row(name, "bitstr")
	}
}

func (c *Codec) readBitmap(name string, v *model.Bitmap) {
	*v = model.Bitmap{}
	var n uint32
	if c.Uint32(name, &n); c.err != nil || n == noVal32 {
		return
	}
	text := c.mem(name)
	if c.skipping || c.err != nil {
		return
	}
	if len(text) > 0 && text[len(text)-1] != 0 {
		c.Fail(name, ErrNoNUL)
		return
	}
	digits := (int(n) + 3) / 4
	if len(text) != len("0x")+digits+1 || string(text[:2]) != "0x" {
		c.Fail(name, ErrBitString)
		return
	}
	v.Set, v.Len, v.Bits = true, n, make([]byte, (int(n)+7)/8)
	if !unhex(v.Bits, text[2:2+digits]) {
		*v = model.Bitmap{}
		c.Fail(name, ErrBitString)
	}
}

// unhex decodes hexadecimal digits into bits, and reports whether it could.
// Counted from the right, digit i holds bits 4i to 4i+3. Most digits of a list
// of nodes are zeros, so sixteen of them are skipped at once.
func unhex(bits, digits []byte) bool {
	const zeros = 0x3030303030303030
	for i, end := 0, len(digits); end > 0; {
		if end >= 16 && binary.LittleEndian.Uint64(digits[end-16:]) == zeros && binary.LittleEndian.Uint64(digits[end-8:]) == zeros {
			i, end = i+8, end-16
			continue
		}
		low, high := hexValues[digits[end-1]], byte(0)
		if end > 1 {
			high = hexValues[digits[end-2]]
		}
		if low|high > 0xf {
			return false
		}
		bits[i] = high<<4 | low
		i, end = i+1, end-2
	}
	return true
}

// hexValues contains the value of each hexadecimal digit, and 0xff for all other
// bytes.
var hexValues = func() (values [256]byte) {
	for b := range values {
		values[b] = 0xff
	}
	for i, digit := range "0123456789abcdef" {
		values[digit] = byte(i)
	}
	for i, digit := range "ABCDEF" {
		values[digit] = byte(10 + i)
	}
	return values
}()

func hexBits(v *model.Bitmap) string {
	const hex = "0123456789ABCDEF"
	digits := int(v.Len+3) / 4
	text := make([]byte, 2+digits)
	copy(text, "0x")
	for i := range digits {
		text[len(text)-1-i] = hex[v.Bits[i/2]>>(4*(i%2))&0xf]
	}
	return string(text)
}
