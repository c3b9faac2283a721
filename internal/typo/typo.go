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

// distance returns the number of letters that must be changed, added or removed, and
// of neighbours that must be swapped, to turn a into b: the optimal string alignment.
func distance(a, b string) int {
	var rows [3][maxLength + 4]int // of the two letters before, of the one before, and of this letter of a
	for j := range len(b) + 1 {
		rows[2][j] = j
	}
	for i := range len(a) {
		rows[0], rows[1] = rows[1], rows[2]
		rows[2][0] = i + 1
		for j := range len(b) {
			d := rows[1][j]
			if a[i] != b[j] {
				d++
			}
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				d = min(d, rows[0][j-1]+1)
			}
			rows[2][j+1] = min(d, rows[2][j]+1, rows[1][j+1]+1)
		}
	}
	return rows[2][len(b)]
}
