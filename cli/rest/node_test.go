package rest

import "testing"

// TestGPUs checks how GPUs are counted in lists of generic resources, as Slurm
// prints them.
func TestGPUs(t *testing.T) {
	for gres, want := range map[string]int64{
		"": 0, "gpu:4": 4, "gpu:a100:4": 4, "gpu:a100:4(S:0-1)": 4, "gpu:a100:2(IDX:0-1),gpu:h100:1(IDX:7)": 3, "gpu": 1, "gpu:a100": 1,
		"nic:2,gpu:2(IDX:0,2)": 2, "gpu:0": 0, "gpu:a100:0(IDX:N/A)": 0, "gpus:4": 0, "(null)": 0,
	} {
		n := Node{Gres: gres, GresUsed: gres}
		if used, all := n.GPUs(); used != want || all != want {
			t.Errorf("%q: %d of %d, want %d", gres, used, all, want)
		}
	}
}
