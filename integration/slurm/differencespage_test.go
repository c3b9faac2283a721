package slurm

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

const (
	differencesPage = "../../docs/generated/DIFFERENCES.md"
	differencesHead = `# Differences that tests have found

This page is generated. [DIFFERENCES.md](../DIFFERENCES.md) describes the differences between the gateway and slurmrestd that an administrator or a client
developer should know; these tables list each one that the comparison of both programs has found.

A row is about Slurm 24.11 and 26.05 and all versions of the API, unless the column *only* names some of them. ` + "`*`" + ` matches one part of a path or
field, and ` + "`**`" + ` several. Several values in a cell have a semicolon between them.

## Fields of answers

| only | endpoint | field | difference |
| --- | --- | --- | --- |
`
	changesHead = `
## Effects of changes

The column *accepted by* names the program that accepts the request, if the other refuses it. A row does not cover the fields after ` + "`except`" + `.

| only | operation | field | value in the request | accepted by | difference |
| --- | --- | --- | --- | --- | --- |
`
)

// TestDifferencesPage checks that differencesPage matches fieldTable and
// changeTable. It needs no Slurm.
func TestDifferencesPage(t *testing.T) {
	var b strings.Builder
	b.WriteString(differencesHead)
	for _, group := range groupRows(readTable(t, fieldTable, 6)) {
		var fields []string
		for _, row := range group {
			if field := row.cells[3]; !slices.Contains(fields, field) {
				fields = append(fields, field)
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", onlyIn(group[0]), group[0].cells[2], strings.Join(fields, "; "), group[0].cells[5])
	}
	b.WriteString(changesHead)
	for _, row := range readTable(t, changeTable, 7) {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", onlyIn(row), row.cells[2], row.cells[3], row.cells[4], acceptedBy(row.cells[5]), row.cells[6])
	}
	if updating() {
		must(t, os.WriteFile(differencesPage, []byte(b.String()), 0o644))
	} else if text, err := os.ReadFile(differencesPage); err != nil || string(text) != b.String() {
		t.Errorf("%s does not match %s and %s (%v): make golden", differencesPage, fieldTable, changeTable, err)
	}
}

// groupRows puts adjacent rows of fieldTable together that differ in their
// fields only.
func groupRows(rows []tableRow) (groups [][]tableRow) {
	for _, row := range rows {
		last := len(groups) - 1
		if last >= 0 && onlyIn(groups[last][0]) == onlyIn(row) && groups[last][0].cells[2] == row.cells[2] && groups[last][0].cells[5] == row.cells[5] {
			groups[last] = append(groups[last], row)
			continue
		}
		groups = append(groups, []tableRow{row})
	}
	return groups
}

// onlyIn returns the releases and versions of a row, unless it is about all that
// the tests compare.
func onlyIn(row tableRow) string {
	var only []string
	if releases := row.cells[0]; releases != "all" && releases != "24.11, 26.05" {
		only = append(only, releases)
	}
	if versions := row.cells[1]; versions != "all" {
		first, rest, several := strings.Cut(versions, ", ")
		if several && strings.Contains(rest, ", ") { // the versions of such a row are consecutive
			versions = first + " to " + rest[strings.LastIndex(rest, " ")+1:]
		}
		only = append(only, versions)
	}
	return strings.Join(only, "; ")
}

// acceptedBy returns the program that accepts a request which the other one
// refuses, for the differences of a row in changeTable.
func acceptedBy(differences string) string {
	theirs, ours := strings.Contains(differences, "only theirs accepts"), strings.Contains(differences, "only ours accepts")
	switch {
	case strings.Contains(differences, "only * accepts"), theirs && ours:
		return "one of them"
	case theirs:
		return "slurmrestd"
	case ours:
		return "the gateway"
	}
	return ""
}
