// Package fips describes the cryptographic module with which a program was built
// ("make build FIPS=1"). Programs without cryptography don't import it, because it
// links the module.
package fips

import "crypto/fips140"

// Module returns the version of the Go Cryptographic Module, or "" if the
// program does not run in FIPS 140-3 mode.
func Module() string {
	if !fips140.Enabled() {
		return ""
	}
	return fips140.Version()
}

// Version returns the text for -V: the build, and the module if there is one.
func Version(build string) string {
	if m := Module(); m != "" {
		return build + ", FIPS 140-3 module " + m
	}
	return build
}
