package client

import (
	"strings"

	"schedrestd/model"
)

// named returns the element of a list that has the wanted name, or nil. Like
// slurmrestd, it prefers an exact match to an element whose name differs only
// in case.
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
