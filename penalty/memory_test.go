package penalty

import "testing"

// TestMemory: a credential counts once, however it alternates with others, and
// the memory stays bounded.
func TestMemory(t *testing.T) {
	m := NewMemory(100)
	fresh := 0
	for i := range 1000 { // one that retries two of them while another guesses
		for _, credential := range []uint64{1, 2} {
			if m.Add(credential) != (i == 0) {
				t.Fatalf("round %d: credential %d counts wrongly", i, credential)
			}
		}
		if i < 90 && m.Add(uint64(1000+i)) {
			fresh++
		}
	}
	if fresh != 90 {
		t.Errorf("of 90 different guesses %d count", fresh)
	}
	for i := range 10_000 {
		if !m.Add(uint64(10_000 + i)) {
			t.Fatalf("guess %d does not count", i)
		}
	}
	if n := len(m.seen); n != 100 {
		t.Errorf("it has %d credentials", n)
	}
}
