// Package example has findings of each kind.
package example

// cageOf is a function.
func cageOf(anchor int) int {
	inACage := anchor // somebody's
	return inACage
}

// size tells whether there is one.
func size() string { return "nobody knows this" }

// runs returns 1.
func runs() int { return 1 }

// Runs the other one, in a cage.
func other() {}
