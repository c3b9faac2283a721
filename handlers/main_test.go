package handlers

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain makes garbage collection rarer. These tests send a hundred thousand
// bodies, and would otherwise spend half of the time on collecting garbage.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
