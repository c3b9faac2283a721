package openapi

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain makes garbage collection less frequent. These tests keep many parsed
// documents, and would otherwise spend a third of their time on it.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
