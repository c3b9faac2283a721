//go:build cgo

package plan

// cgo reports that this is a build with cgo, which -race needs. Such a program
// can't enter the sandbox.
const cgo = true
