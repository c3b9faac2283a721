package rest

import "testing"

func TestAcceptEncoding(t *testing.T) {
	tests := []struct {
		accept string
		want   string
		always bool
		ok     bool
	}{
		{"", "", false, true},
		{"gzip", "gzip", false, true},
		{"GZIP", "gzip", false, true},
		{"x-gzip", "gzip", false, true},
		{"zstd", "zstd", false, true},
		{"gzip, deflate, br, zstd", "zstd", false, true},
		{"gzip;q=1, zstd;q=0.9", "gzip", false, true},
		{"*", "zstd", false, true},
		{"zstd;q=0, *", "gzip", false, true},
		{"br", "", false, true},
		{"gzip;q=0", "", false, true},
		{"identity", "", false, true},
		{"identity;q=1, gzip;q=0.5", "", false, true},
		{"identity;q=0.5, gzip;q=1", "gzip", false, true},
		{"identity;q=0, gzip", "gzip", true, true},
		{"*;q=0, gzip", "gzip", true, true},
		{"*;q=0", "", true, false},
		{"identity;q=0, br", "", true, false},
		{"gzip;q=nonsense", "", false, true},
	}
	for _, tt := range tests {
		got, ok := chooseCoding(preferences([]string{tt.accept}))
		if want := (chosenCoding{tt.want, tt.always}); got != want || ok != tt.ok {
			t.Errorf("%q: %+v %v, want %+v %v", tt.accept, got, ok, want, tt.ok)
		}
	}
}
