package bench

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"testing"
)

// compare measures both servers in every round, and swaps their order after
// each round. It adds two rows to table: one with CPU times, and one with
// request rates.
func compare(b *testing.B, table *comparison, label string, servers []server, l load) {
	for _, s := range servers {
		measure(b, s, l) // warm up
	}
	samples := [2][]sample{}
	for round := 0; b.Loop(); round++ {
		for i := range servers {
			index := (round + i) % 2
			samples[index] = append(samples[index], measure(b, servers[index], l))
		}
	}
	for _, x := range []struct {
		label, unit string
		value       func(sample) float64
	}{
		{"CPU per request", "µs", func(s sample) float64 { return s.cpu }},
		{"requests per second", "", func(s sample) float64 { return s.rate }},
	} {
		var ratios []float64
		for i := range samples[0] {
			ratios = append(ratios, x.value(samples[0][i])/x.value(samples[1][i]))
		}
		first := median(samples[0], x.value)
		r := row{name: label + ": " + x.label, unit: x.unit, figures: []float64{first, median(samples[1], x.value)}, ratio: medianFloat(ratios)}
		r.low, r.high = interval(ratios)
		r.rounds = len(ratios)
		table.add(r)
		name := strings.ReplaceAll(x.label, " ", "-")
		b.ReportMetric(first, name)
		b.ReportMetric(r.ratio, name+"-ratio")
	}
	b.ReportMetric(0, "ns/op") // omit ns/op, because the duration of a whole round is meaningless
}

// interval computes a confidence interval for the median of a quantity from the
// measured values in list. With 6 or more values, the interval contains the
// true median with a probability of at least 95 %, whatever the distribution of
// the values. (The number of values below the median is distributed like the
// number of heads in n coin tosses.) With fewer values, the interval extends
// from the smallest value to the largest, and the probability is lower.
func interval(list []float64) (low, high float64) {
	list = slices.SortedFunc(slices.Values(list), cmp.Compare)
	n := len(list)
	rank, below, term := 0, 0.0, math.Pow(0.5, float64(n))
	for k := range n / 2 {
		if below += term; below > 0.025 {
			break
		}
		rank = k
		term *= float64(n-k) / float64(k+1)
	}
	return list[rank], list[n-1-rank]
}

// TestInterval checks that the ends of an interval have the ranks that tables
// of the sign test give.
func TestInterval(t *testing.T) {
	for n, rank := range map[int]int{1: 0, 5: 0, 6: 0, 9: 1, 20: 5, 30: 9, 100: 39} {
		var list []float64
		for i := range n {
			list = append(list, float64(n-1-i))
		}
		if low, high := interval(list); low != float64(rank) || high != float64(n-1-rank) {
			t.Errorf("of %d: %g and %g", n, low, high)
		}
	}
}
