// Package failpoint lets a test end this process, as kill -9 would, at the places where
// that is worst: between two writes that belong together. Only builds with the tag
// "failpoint" can; in all others the calls are empty and the environment is not read.
package failpoint
