package codec

import (
	"errors"
	"math"
	"strconv"
)

// Decimal encodes or decodes a number that may exceed the range of a double. It
// is sent as a String, in decimal with six digits after the point. Like Slurm,
// Decimal reads "nan" as 0, because some C libraries write 0 that way.
func (c *Codec) Decimal(name string, v *float64) {
	switch c.mode {
	case encoding:
		c.putString(decimal(*v))
	case decoding:
		*v = c.readDecimal(name)
	case filling:
		*v = float64(c.rng.IntN(1 << 20))
	case describing:
		c.row(name, "f128str")
	}
}

func decimal(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "inf"
	case math.IsInf(v, -1):
		return "-inf"
	}
	return strconv.FormatFloat(v, 'f', 6, 64)
}

func (c *Codec) readDecimal(name string) float64 {
	var text string
	if c.String(name, &text); c.err != nil || c.skipping {
		return 0
	}
	if text == "nan" || text == "-nan" {
		return 0
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) { // beyond a double; treated as infinite
		c.Fail(name, ErrDecimal)
		return 0
	}
	return v
}
