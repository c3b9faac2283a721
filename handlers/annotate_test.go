package handlers

import "testing"

// TestWithName checks that a message names an object once.
func TestWithName(t *testing.T) {
	for _, tt := range []struct{ name, message, want string }{
		{"job 12", "there is no such job", "job 12: there is no such job"},
		{"job 12", "there is no job 12", "there is no job 12"},
		{"job 12_3", "there is no job 12", "job 12_3: there is no job 12"},
	} {
		if got := withName(tt.name, tt.message); got != tt.want {
			t.Errorf("%s, %s: %s", tt.name, tt.message, got)
		}
	}
}
