// Package typo finds the known name that a misspelled name probably stands for.
package typo

// maxLength is the maximum length of a name that is compared with others. It
// limits the cost of a comparison.
const maxLength = 64

// Nearest returns the known name that differs from word by the fewest typing
// errors. It permits one error in a word of up to four letters, two in a word
// of five or six letters, and three in a longer word. If every known name
// differs by more errors, Nearest returns "".
func Nearest(word string, known []string) (nearest string) {
	if len(word) > maxLength {
		return ""
	}
	best := min(4, max(2, (len(word)+1)/2))
	for _, name := range known {
		if difference := len(name) - len(word); difference >= best || -difference >= best {
			continue
		}
		if d := distance(word, name); d < best {
			best, nearest = d, name
		}
	}
	return nearest
}

// distance returns the number of letters that must be changed, added or removed
// to turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := diagonal
			if a[i] != b[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
