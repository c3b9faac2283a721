package penalty

import "testing"

// TestMemory checks that a credential counts once, even if it alternates with
// other credentials, and that the size of the memory is limited.
func TestMemory(t *testing.T) {
	m := NewMemory(Row{Size: 100})
	fresh := 0
	for i := range 1000 { // one client retries two credentials while another guesses
		for _, credential := range []uint64{1, 2} {
			if m.Add(credential) != (i == 0) {
				t.Fatalf("round %d: wrong result for credential %d", i, credential)
			}
		}
		if i < 90 && m.Add(uint64(1000+i)) {
			fresh++
		}
	}
	if fresh != 90 {
		t.Errorf("%d of 90 different guesses count", fresh)
	}
	for i := range 10_000 {
		if !m.Add(uint64(10_000 + i)) {
			t.Fatalf("guess %d does not count", i)
		}
	}
	if n := len(m.hashes); n != 100 {
		t.Errorf("the memory has %d credentials", n)
	}
}
