package model

import "testing"

// TestSameName checks which names are the same, and that the keys of maps agree.
func TestSameName(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{"phys", "phys", true},
		{"phys", "PHYS", true},
		{"my-Proj_1.x", "MY-pROJ_1.X", true},
		{"phys", "physi", false},
		{"", "a", false},
		{"a@", "a`", false}, // differ in the bit that distinguishes case
		{"a[", "a{", false},
		{"josé", "JOSÉ", true},
		{"josé", "jose", false},
		{"k", "\u212a", true}, // the sign for Kelvin
		{"µ", "μ", true},      // the sign for micro, and the Greek letter
		{"σ", "ς", true},
		{"ß", "ss", false},
		{"名", "名", true},
	} {
		if got := SameName(tt.a, tt.b); got != tt.same {
			t.Errorf("SameName(%q, %q) = %v", tt.a, tt.b, got)
		}
		if got := NameKey(tt.a) == NameKey(tt.b); got != tt.same {
			t.Errorf("keys of %q and %q: %q and %q", tt.a, tt.b, NameKey(tt.a), NameKey(tt.b))
		}
	}
}

func TestIndexName(t *testing.T) {
	list := []string{"PHYS", "phys", "Bio"}
	for name, want := range map[string]int{"phys": 1, "PHYS": 0, "Phys": 0, "BIO": 2, "chem": -1, "": -1} {
		if got := IndexName(list, name); got != want || HasName(list, name) != (want >= 0) {
			t.Errorf("IndexName(%q) = %d, want %d", name, got, want)
		}
	}
}
