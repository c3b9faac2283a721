package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"schedrestd/cli/rest"
	"schedrestd/cli/table"
)

func textCell(s string) table.Cell { return table.Cell{Text: s} }

// countCell returns a cell with text, which is sorted by the number n.
func countCell(text string, n float64) table.Cell {
	return table.Cell{Text: text, Number: n, Numeric: true}
}

// stateColor returns the color of a job's or node's state.
func stateColor(states rest.Words) table.Color {
	for _, s := range states {
		switch s {
		case "DOWN", "ERROR", "FAIL", "NOT_RESPONDING", "INVALID":
			return table.Red
		case "DRAIN", "DRAINING", "DRAINED", "MAINTENANCE", "COMPLETING":
			return table.Yellow
		}
	}
	if len(states) == 0 {
		return table.Plain
	}
	switch states[0] {
	case "RUNNING", "IDLE", "UP":
		return table.Green
	case "ALLOCATED", "MIXED":
		return table.Blue
	case "PENDING", "SUSPENDED", "INACTIVE":
		return table.Yellow
	case "COMPLETED", "UNKNOWN":
		return table.Gray
	}
	return table.Red
}

func stateCell(states rest.Words) table.Cell {
	return table.Cell{Text: strings.Join(states, "+"), Color: stateColor(states)}
}

// numberCell returns a cell with a count, or with a dash if the count is unset.
func numberCell(n rest.Number) table.Cell {
	switch {
	case n.Infinite:
		return countCell("unlimited", math.Inf(1))
	case !n.Set:
		return textCell("")
	}
	return countCell(strconv.FormatInt(n.Int(), 10), n.Value)
}

// memoryCell returns a cell with an amount of memory, or with a dash if the
// amount is unset. The mib argument is in MiB.
func memoryCell(mib rest.Number) table.Cell {
	if !mib.Set {
		return textCell("")
	}
	return countCell(formatMemory(mib.Int()), mib.Value)
}

// limitCell returns a cell with a number of minutes, or with a dash if it is
// unset.
func limitCell(n rest.Number) table.Cell {
	c := numberCell(n)
	c.Text = formatLimit(n)
	return c
}

// timeCell returns a cell with a time, or with a dash if it is unset.
func timeCell(n rest.Number) table.Cell {
	if n.Int() == 0 {
		return textCell("")
	}
	return countCell(formatTime(n), n.Value)
}

// gpuCell returns a cell with the numbers of GPUs in use and in total, or with
// a dash if there are none.
func gpuCell(used, total int64) table.Cell {
	if total == 0 {
		return textCell("")
	}
	return countCell(fmt.Sprintf("%d/%d", used, total), float64(used))
}

// formatDuration returns a duration as D-HH:MM:SS.
func formatDuration(d time.Duration) string {
	s := int64(d / time.Second)
	days, hours, minutes, seconds := s/86400, s/3600%24, s/60%60, s%60
	switch {
	case days > 0:
		return fmt.Sprintf("%d-%02d:%02d:%02d", days, hours, minutes, seconds)
	case hours > 0:
		return fmt.Sprintf("%d:%02d:%02d", hours, minutes, seconds)
	}
	return fmt.Sprintf("%d:%02d", minutes, seconds)
}

// formatLimit formats a number of minutes as D-HH:MM:SS.
func formatLimit(n rest.Number) string {
	switch {
	case n.Infinite:
		return "unlimited"
	case !n.Set:
		return ""
	}
	return formatDuration(time.Duration(n.Int()) * time.Minute)
}

// formatTime formats a time that the server sent. The result is in the time
// zone of this process.
func formatTime(n rest.Number) string {
	if n.Int() == 0 {
		return ""
	}
	return time.Unix(n.Int(), 0).Format("2006-01-02T15:04:05")
}

// formatMemory formats a number of MiB, for example as 1.5G. It chooses the
// largest unit in which the number is at least 1. It prints at most one digit
// after the decimal point.
func formatMemory(mib int64) string {
	switch {
	case mib >= 1<<20:
		return formatDecimal(float64(mib)/(1<<20)) + "T"
	case mib >= 1<<10:
		return formatDecimal(float64(mib)/(1<<10)) + "G"
	}
	return fmt.Sprintf("%dM", mib)
}

func formatDecimal(f float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0")
}
