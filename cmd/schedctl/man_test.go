package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestManual checks that schedctl(1) lists all commands and options and no
// others.
func TestManual(t *testing.T) {
	page, err := os.ReadFile("../../docs/man/schedctl.1")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, entry := range regexp.MustCompile(`(?m)^\.It (.*)$`).FindAllStringSubmatch(string(page), -1) {
		for _, m := range regexp.MustCompile(`(Fl|^Cm) (-?[A-Za-z-]+)`).FindAllStringSubmatch(entry[1], -1) {
			got[m[1]+" "+m[2]] = true
		}
	}
	want := map[string]bool{"Fl h": true, "Fl -help": true}
	var add func(cmd *cobra.Command)
	add = func(cmd *cobra.Command) {
		flag := func(f *pflag.Flag) {
			if f.Hidden {
				return
			}
			want["Fl -"+f.Name] = true
			if f.Shorthand != "" {
				want["Fl "+f.Shorthand] = true
			}
		}
		cmd.Flags().VisitAll(flag)
		cmd.PersistentFlags().VisitAll(flag)
		for _, sub := range cmd.Commands() {
			if sub.Hidden {
				continue
			}
			want["Cm "+sub.Name()] = true
			add(sub)
		}
	}
	add(root())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-that the command has +that the page has):\n%s", diff)
	}
	for _, name := range []string{"SCHED_CLUSTER", "SCHED_CLUSTERS_FILE", "SCHED_CONF", "SCHED_CONF_SERVER", "SCHED_JWT", "SCHED_URL", "SCHED_SERVER_USER", "NO_COLOR"} {
		if !strings.Contains(string(page), "\n.It Ev "+name+"\n") {
			t.Errorf("%s has no entry", name)
		}
	}
}
