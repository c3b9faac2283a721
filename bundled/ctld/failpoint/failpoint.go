// Package failpoint lets a test kill this process between two writes that
// belong together, which is the worst moment for a crash. It has an effect only
// in builds with the tag "failpoint". In all other builds its functions do
// nothing, and do not read the environment.
package failpoint
