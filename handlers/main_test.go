package handlers

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets the garbage grow. These tests send a hundred thousand bodies,
// and half of the time would be spent on collecting their garbage.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
