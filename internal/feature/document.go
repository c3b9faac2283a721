package feature

import (
	"slices"
	"strings"

	"schedrestd/internal/errs"
)

// TablesMode is the first argument that makes a worker's program print the
// OpenAPI document and exit.
const TablesMode = "openapi"

// DefaultStatuses lists the responses that the OpenAPI document describes by
// default for each operation.
var DefaultStatuses = []string{"200", "default"}

// ParseStatuses parses the value of SCHEDRESTD_RESPONSE_STATUS_CODES. It drops
// repeated responses.
func ParseStatuses(origin, value string) ([]string, error) {
	var list []string
	for _, word := range split(value) {
		if strings.EqualFold(word, "default") { // in any case, as in Slurm
			word = "default"
		}
		if err := CheckStatus(origin, word); err != nil {
			return nil, err
		}
		if !slices.Contains(list, word) {
			list = append(list, word)
		}
	}
	return list, nil
}

// CheckStatus returns an error if word does not name a response, such as
// "default", "200" or "4XX".
func CheckStatus(origin, word string) error {
	if isStatus(word) {
		return nil
	}
	return errs.New(errs.Invalid, "%s: unknown response %q", origin, word).
		WithHint("allowed values: default, a status such as 200, a class such as 4XX")
}

func isStatus(s string) bool {
	if s == "default" {
		return true
	}
	if len(s) != 3 || s[0] < '1' || s[0] > '5' {
		return false
	}
	return s[1:] == "XX" || strings.Trim(s[1:], "0123456789") == ""
}
