package schema

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// Integer is the constraint for the Go types that the model uses for JSON
// integers.
type Integer interface {
	~int | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// Int32 returns the type of an integer that the API declares as int32. In the
// model, the integer may have another size.
func Int32[T Integer]() Type[T] {
	_, hi := bounds[T]()
	return simple[T]{&Shape{Kind: "integer", Format: "int32", Wide: hi > math.MaxInt32}, renderInteger[T], parseInteger[T]}
}

// Int64 returns the type of an integer that the API declares as int64.
func Int64[T Integer]() Type[T] {
	return simple[T]{&Shape{Kind: "integer", Format: "int64"}, renderInteger[T], parseInteger[T]}
}

func renderInteger[T Integer](e Encoder, n *T) {
	if *n < 0 {
		e.Int(int64(*n))
		return
	}
	e.Uint(uint64(*n))
}

func parseInteger[T Integer](r *Report, v *Value, into *T) bool {
	lo, hi := bounds[T]()
	n, ok := ParseInteger(r, v, lo, hi)
	*into = T(n)
	return ok
}

// bounds returns the smallest and the largest value of T that a client may
// send. Both are limited to the range of an int64.
func bounds[T Integer]() (lo, hi int64) {
	ones := ^T(0)
	if ones < 0 { // signed: hi consists of all bits below the sign bit
		for b := T(1); b > 0; b <<= 1 {
			hi = hi<<1 | 1
		}
		return -hi - 1, hi
	}
	return 0, int64(min(uint64(ones), math.MaxInt64))
}

// ParseInteger parses an integer between lo and hi. It accepts a number whose
// fraction is zero and, with a warning, a string that contains an integer. All
// other values are errors.
func ParseInteger(r *Report, v *Value, lo, hi int64) (int64, bool) {
	switch v.Kind {
	case Number:
	case Text:
		if _, err := strconv.ParseInt(v.Text, 10, 64); err != nil {
			return 0, r.Error(v, "expected integer, got string %q", Shorten(v.Text))
		}
		if !v.Untyped {
			r.Warn(v, "expected integer, got string")
		}
	default:
		return 0, r.Error(v, "expected integer, got %s", v.Kind)
	}
	n, whole, fits := wholeNumber(v.Text)
	switch {
	case !whole:
		return 0, r.Error(v, "expected integer, got %s", Shorten(v.Text))
	case !fits || n < lo || n > hi:
		return 0, r.Error(v, "%s is out of range, %d to %d", Shorten(v.Text), lo, hi)
	}
	return n, true
}

// wholeNumber parses a JSON number. It reports whether the number is whole, and
// whether it fits into 64 bits. A number with a decimal point or an exponent
// fits only if its magnitude is at most 2^53.
func wholeNumber(s string) (n int64, whole, fits bool) {
	if !strings.ContainsAny(s, ".eE") {
		n, err := strconv.ParseInt(s, 10, 64)
		return n, true, err == nil
	}
	digits, zeros, ok := scientific(s)
	switch {
	case digits == "" || digits == "-":
		return 0, true, true
	case !ok || zeros > 16:
		return 0, zeros > 0, false
	case zeros < 0:
		return 0, false, false
	}
	n, err := strconv.ParseInt(digits+strings.Repeat("0", zeros), 10, 64)
	// Above 2^53, a double can't represent every integer. A client that used a
	// double may have intended another integer.
	return n, true, err == nil && n <= 1<<53 && n >= -1<<53
}

// scientific returns the digits of a number, and the number of zeros to append
// to them. The digits include the sign, but no leading or trailing zeros. If
// zeros is negative, the last -zeros digits follow the decimal point.
//
// The result is exact. Conversion to a double would turn 1e-400 into 0 and
// 0.99999999999999999999 into 1.
//
// If the exponent exceeds 32 bits, ok is false. The digits are still valid, and
// the sign of zeros is correct, but its value is not.
func scientific(s string) (digits string, zeros int, ok bool) {
	mantissa, exponent := s, ""
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa, exponent = s[:i], s[i+1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	significand := whole + fraction
	sign := ""
	if strings.HasPrefix(significand, "-") {
		sign = "-"
	}
	significand = strings.TrimLeft(strings.TrimLeft(significand, "+-"), "0") // YAML has plus signs
	digits = strings.TrimRight(significand, "0")
	zeros = len(significand) - len(digits) - len(fraction)
	if exponent != "" {
		e, err := strconv.ParseInt(exponent, 10, 32)
		if err != nil { // no text has enough digits to offset an exponent this large
			return sign + digits, int(e), false
		}
		zeros += int(e)
	}
	return sign + digits, zeros, true
}

// parseFloat parses a number. Like ParseInteger, it accepts a string that
// contains a number, with a warning.
func parseFloat(r *Report, v *Value, into *float64) bool {
	if v.Kind != Number && v.Kind != Text {
		return r.Error(v, "expected number, got %s", v.Kind)
	}
	f, err := strconv.ParseFloat(v.Text, 64)
	switch {
	case errors.Is(err, strconv.ErrRange) && v.Kind == Number:
		return r.Error(v, "%s is out of range", Shorten(v.Text))
	case err != nil || math.IsNaN(f) || math.IsInf(f, 0):
		return r.Error(v, "expected number, got string %q", Shorten(v.Text))
	case v.Kind == Text && !v.Untyped:
		r.Warn(v, "expected number, got string")
	}
	*into = f
	return true
}
