package pod

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"schedrestd/integration/harness"
)

// Image is a container image as a container runtime receives it.
type Image struct {
	Root            string // root directory
	User            string
	Env             []string
	Entrypoint, Cmd []string
}

// sources is the directory of the project, seen from a package of tests.
const sources = "../.."

// BuildImage follows the Containerfile to build the image without a builder.
// It supports only the instructions that this Containerfile contains.
func BuildImage(t *testing.T) *Image {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(sources, "deploy/container/Containerfile"))
	harness.Must(t, err)
	i := &Image{Root: t.TempDir()}
	harness.Must(t, os.Chmod(i.Root, 0o755))
	for line := range strings.Lines(string(text)) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "", "FROM", "EXPOSE", "STOPSIGNAL":
		case "COPY":
			from := strings.Fields(rest)
			to := filepath.Join(i.Root, from[len(from)-1])
			out, err := exec.Command("sh", "-ec", `cd "$0"; mkdir -p "$1"; cp -p `+strings.Join(from[:len(from)-1], " ")+` "$1"`, sources, to).CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v\n%s", line, err, out)
			}
		case "USER":
			i.User = rest
		case "ENV":
			i.Env = append(i.Env, rest)
		case "ENTRYPOINT":
			harness.Must(t, json.Unmarshal([]byte(rest), &i.Entrypoint))
		case "CMD":
			harness.Must(t, json.Unmarshal([]byte(rest), &i.Cmd))
		default:
			if !strings.HasPrefix(word, "#") {
				t.Fatalf("unknown instruction: %s", line)
			}
		}
	}
	return i
}
