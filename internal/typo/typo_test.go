package typo

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	known := []string{"time_limit", "time_minimum", "tasks", "tasks_per_node", "name", "nice", "current_working_directory"}
	for _, tt := range []struct{ word, want string }{
		{"time_limt", "time_limit"},
		{"tiem_limit", "time_limit"},
		{"timelimit", "time_limit"},
		{"curent_workin_directry", "current_working_directory"},
		{"Tasks", "tasks"},
		{"task", "tasks"},
		{"nmae", "name"}, // neighbours that are swapped are one error
		{"nmee", ""},     // a four-letter word with two errors could be any word
		{"nam", "name"},
		{"colour", ""},
		{"", ""},
		{"time_limit_of_the_job", ""},
		{strings.Repeat("x", maxLength+1), ""},
	} {
		if got := Nearest(tt.word, known); got != tt.want {
			t.Errorf("Nearest(%q) = %q, want %q", tt.word, got, tt.want)
		}
	}
}
