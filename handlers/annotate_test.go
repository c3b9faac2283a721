package handlers

import (
	"testing"

	"schedrestd/handlers/slurmerror"
	"schedrestd/internal/errs"
)

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

// TestLackOfPrivilege checks the errors for users who may not change an object.
func TestLackOfPrivilege(t *testing.T) {
	refused := errs.New(errs.Denied, "the user is missing, or you may not act for this user").WithNumber(slurmerror.NoUserID)
	for noun, want := range map[string]string{
		"job":  "job n1: only the job's user, operators and administrators may do this",
		"node": "node n1: you are not allowed to change it",
	} {
		if got := annotateNamed(refused, noun, "n1", "").Error(); got != want {
			t.Errorf("%s: %s, want %s", noun, got, want)
		}
	}
}
