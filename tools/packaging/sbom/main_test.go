package main

import "testing"

// TestLibraryVersion checks that libraryVersion returns a version without the
// prefix "go" and without blanks, regardless of the form of the toolchain's
// version.
func TestLibraryVersion(t *testing.T) {
	for toolchain, want := range map[string]string{
		"go1.26.1":            "1.26.1",
		"go1.27rc1":           "1.27rc1",
		"go1.26.1 X:nodwarf5": "1.26.1",
		"devel go1.27-0123abcd Mon Jan 2 15:04:05 2026 +0000": "1.27-0123abcd",
		"devel +0123abcd Mon Jan 2":                           "devel_+0123abcd_Mon_Jan_2",
		"1":                                                   "1",
	} {
		if got := libraryVersion(toolchain); got != want {
			t.Errorf("%s: %s, want %s", toolchain, got, want)
		}
	}
}
