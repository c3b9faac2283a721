// Package release says which release of this project a program is of.
package release

// Version is the release, as major.minor.micro.
const Version = "0.1.0"
