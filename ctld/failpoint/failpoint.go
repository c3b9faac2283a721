// Package failpoint lets a test kill this process at the worst places: between
// two writes that belong together. Only builds with the tag "failpoint" do
// that; in all others the calls are empty and the environment is not read.
package failpoint
