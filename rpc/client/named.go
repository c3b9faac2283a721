package client

import (
	"strings"

	"schedrestd/model"
)

// named finds the one of a list's elements whose name is wanted: as it is written, else the first that
// differs in capitals alone, as Slurm's own gateway looks for it. It is nil when there is none.
func named[T any](want string, name func(*T) string, list func(each func(*T) error) (model.Time, error)) (*T, model.Time, error) {
	var exact, alike *T
	lastUpdate, err := list(func(element *T) error {
		switch has := name(element); {
		case exact == nil && has == want:
			found := *element
			exact = &found
		case alike == nil && strings.EqualFold(has, want):
			found := *element
			alike = &found
		}
		return nil
	})
	if err != nil {
		return nil, lastUpdate, err
	}
	if exact == nil {
		exact = alike
	}
	return exact, lastUpdate, nil
}
