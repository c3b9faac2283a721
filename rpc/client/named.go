package client

import (
	"strings"

	"schedrestd/model"
)

// findByName searches a list for the element with the wanted name, and returns
// that element or the error missing. Like slurmrestd, it prefers an exact match
// to a name that differs only in case.
func findByName[T any](want string, name func(*T) string, missing error, list func(each func(*T) error) (model.Time, error)) (*T, model.Time, error) {
	var exact, similar *T
	lastUpdate, err := list(func(element *T) error {
		switch elementName := name(element); {
		case exact == nil && elementName == want:
			found := *element
			exact = &found
		case similar == nil && strings.EqualFold(elementName, want):
			found := *element
			similar = &found
		}
		return nil
	})
	if err != nil {
		return nil, lastUpdate, err
	}
	if exact == nil {
		exact = similar
	}
	if exact == nil {
		return nil, 0, missing
	}
	return exact, lastUpdate, nil
}
