package table

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Terminal is the output of a command.
type Terminal struct {
	File *os.File // nil if the output is not a terminal
}

// TerminalOf returns a Terminal for w, which need not be a terminal.
func TerminalOf(w io.Writer) Terminal {
	f, ok := w.(*os.File)
	if !ok {
		return Terminal{}
	}
	if _, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS); err != nil {
		return Terminal{}
	}
	return Terminal{f}
}

// IsTerminal reports whether the output is a terminal.
func (t Terminal) IsTerminal() bool { return t.File != nil }

// Size returns the width of the terminal in columns and its height in lines. If
// the size is unknown, both are 0.
func (t Terminal) Size() (columns, lines int) {
	if t.File == nil {
		return 0, 0
	}
	size, err := unix.IoctlGetWinsize(int(t.File.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0
	}
	return int(size.Col), int(size.Row)
}

// Style returns the style of tables for this output. Tables have colors only on
// a terminal, and only if neither NO_COLOR (no-color.org) nor TERM=dumb is set.
func (t Terminal) Style() Style {
	columns, _ := t.Size()
	return Style{Width: columns, Color: t.IsTerminal() && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}
