package schema

import (
	"math/big"
	"strings"
	"testing"
)

// TestWholeNumber checks that wholeNumber examines a number's digits, not its
// value as a double.
func TestWholeNumber(t *testing.T) {
	for _, tt := range []struct {
		text        string
		n           int64
		whole, fits bool
	}{
		{"0", 0, true, true}, {"-0", 0, true, true}, {"0.0", 0, true, true}, {"-0.000e5", 0, true, true}, {"0e99999999999999999999", 0, true, true},
		{"1.0", 1, true, true}, {"-1.50e1", -15, true, true}, {"100e-2", 1, true, true}, {"1e3", 1000, true, true}, {"+1E+3", 1000, true, true}, {"5.", 5, true, true},
		{".5", 0, false, false}, {".5e1", 5, true, true}, {"1.5", 0, false, false}, {"105e-2", 0, false, false},
		{"1e-400", 0, false, false}, {"-1e-999999999999", 0, false, false}, {"0.99999999999999999999", 0, false, false}, {"4503599627370497.5", 0, false, false},
		{"1e400", 0, true, false}, {"1e99999999999999999999", 0, true, false}, {"9223372036854775807", 1<<63 - 1, true, true}, {"9223372036854775808", 0, true, false},
		{"9007199254740992.0", 1 << 53, true, true}, {"9007199254740993.0", 0, true, false}, {"-9007199254740992.0", -1 << 53, true, true}, {"1e18", 0, true, false},
		{"1" + strings.Repeat("0", 5000) + "e-5000", 1, true, true}, {"0." + strings.Repeat("0", 5000) + "1e5001", 1, true, true},
	} {
		n, whole, fits := wholeNumber(tt.text)
		if whole != tt.whole || fits != tt.fits || fits && n != tt.n {
			t.Errorf("%.40s: %d, whole %t, fits %t; want %d, %t, %t", tt.text, n, whole, fits, tt.n, tt.whole, tt.fits)
		}
	}
}

// FuzzWholeNumber compares wholeNumber with exact fractions.
func FuzzWholeNumber(f *testing.F) {
	for _, seed := range []string{"0", "-1.50e1", "1e-400", "0.99999999999999999999", "9007199254740993.0", "105e-2", "1e18"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := ReadJSON(text, Limits{Depth: 1, Values: 1})
		if err != nil || v.Kind != Number || len(text) > 200 {
			return
		}
		if i := strings.IndexAny(v.Text, "eE"); i >= 0 && len(v.Text)-i > 5 {
			return // the exact fraction would take too long
		}
		exact, ok := new(big.Rat).SetString(v.Text)
		if !ok {
			t.Fatalf("%q is no fraction", v.Text)
		}
		n, whole, fits := wholeNumber(v.Text)
		if whole != exact.IsInt() || fits && new(big.Rat).SetInt64(n).Cmp(exact) != 0 {
			t.Errorf("%s: %d, whole %t, fits %t", v.Text, n, whole, fits)
		}
		if small := new(big.Int).Abs(exact.Num()).BitLen() <= 53; whole && small && !fits {
			t.Errorf("%s does not fit", v.Text)
		}
	})
}
