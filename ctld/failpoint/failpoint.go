// Package failpoint lets a test kill this process at the worst moments: between
// two writes that belong together. Only builds with the tag "failpoint" can be
// killed this way; in all others the calls do nothing and the environment is
// not read.
package failpoint
