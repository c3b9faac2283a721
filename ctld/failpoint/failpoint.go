// Package failpoint lets a test kill this process at the worst moments: between
// two writes that belong together. Only builds with the tag "failpoint" support
// this; in all others the calls do nothing and do not read the environment.
package failpoint
