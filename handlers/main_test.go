package handlers

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain makes garbage collection less frequent. These tests send a hundred
// thousand bodies, and would otherwise spend half of their time on it.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
