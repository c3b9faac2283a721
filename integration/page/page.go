// Package page reads the command blocks of a documentation page, so that tests
// can run them as printed. Other fenced blocks are errors, because a test must
// run everything that a reader may type.
package page

import (
	"fmt"
	"os"
	"strings"
)

// Block is one block of commands.
type Block struct {
	Heading  string // text of the heading above the block
	Language string // "sh", "python" or "js"
	Line     int    // number of the block's first line in the file
	Text     string
}

// Blocks returns the command blocks of the page in the file at path, in order.
func Blocks(path string) (blocks []Block, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	heading, open, number := "", -1, 0
	for line := range strings.Lines(string(text)) {
		number++
		fence, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case isFence && open >= 0:
			open = -1
		case isFence && fence != "sh" && fence != "python" && fence != "js":
			return nil, fmt.Errorf("%s:%d: a block of %q, which no test can run: make it a block of sh", path, number, fence)
		case isFence:
			blocks = append(blocks, Block{Heading: heading, Language: fence, Line: number + 1})
			open = len(blocks) - 1
		case open >= 0:
			blocks[open].Text += line
		case strings.HasPrefix(line, "#"):
			heading = strings.TrimSpace(strings.TrimLeft(line, "#"))
		}
	}
	if open >= 0 {
		return nil, fmt.Errorf("%s: the last block has no end", path)
	}
	return blocks, nil
}
