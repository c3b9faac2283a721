package cli

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"schedrestd/cli/table"
	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/internal/printable"
)

// A listedCluster is a line of the file of clusters.
type listedCluster struct {
	name, url string
	tokenFile string // "" for none
}

// siteClusters is the file of clusters of all users of this machine.
const siteClusters = "/etc/sched/clusters"

const clustersHint = "a line has the name of a cluster, the address of its gateway, and the file with your token, if it needs one"

// clustersFile returns the path of the file of clusters: the one that
// SCHED_CLUSTERS_FILE names, the user's own if there is one, or the site's.
func clustersFile() (string, error) {
	path, err := conf.Env("SCHED_CLUSTERS_FILE")
	if err != nil || path != "" {
		return path, err
	}
	if dir, err := os.UserConfigDir(); err == nil {
		own := filepath.Join(dir, "sched", "clusters")
		if _, err := os.Stat(own); !errors.Is(err, fs.ErrNotExist) {
			return own, nil
		}
	}
	return siteClusters, nil
}

// readClusters returns the clusters in a file. The file decides where tokens are
// sent, so other users must not be able to change it.
func readClusters(path string) (list []listedCluster, err error) {
	shown := printable.Text(path)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errs.New(errs.NotFound, "there is no file of clusters %s", shown).WithHint("write one (%s), or name another in SCHED_CLUSTERS_FILE", clustersHint)
	}
	if err != nil {
		return nil, errs.Wrap(err, errs.Invalid, "read the file of clusters")
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, errs.Wrap(err, errs.Invalid, "read the file of clusters")
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || st.Uid != 0 && int(st.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return nil, errs.New(errs.Denied, "other users can change the file of clusters %s", shown).
			WithHint("it decides where your token is sent: make it root's or your own, and run chmod go-w on it")
	}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(text)
		if len(fields) == 0 {
			continue
		}
		c := listedCluster{name: fields[0]}
		if len(fields) > 1 {
			c.url = fields[1]
		}
		if len(fields) > 2 {
			c.tokenFile, err = tokenPath(fields[2])
		}
		if err != nil || len(fields) < 2 || len(fields) > 3 {
			return nil, errs.New(errs.Invalid, "%s, line %d: not a cluster", shown, n).WithHint(clustersHint + "; the path of the file begins with / or ~/")
		}
		list = append(list, c)
	}
	return list, errs.Wrap(lines.Err(), errs.Invalid, "read %s", shown)
}

// tokenPath returns the path of a token's file in the file of clusters.
func tokenPath(text string) (string, error) {
	rest, ok := strings.CutPrefix(text, "~/")
	if !ok {
		if !filepath.IsAbs(text) {
			return "", errors.New("not an absolute path")
		}
		return text, nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, rest), err
}

// selectedCluster returns the cluster that --cluster names or, if the user has
// selected no other server on the command line, that SCHED_CLUSTER names. It
// returns nil if none is named.
func (o *options) selectedCluster() (*listedCluster, error) {
	name, onCommandLine := o.cluster, o.url != ""
	if f := o.cmd.Flag("config"); f != nil && f.Changed {
		onCommandLine = true
	}
	if o.clusterFlag != nil && o.clusterFlag.Changed {
		if onCommandLine {
			return nil, usageError("--cluster excludes --url and --config").WithHint("each of them selects a cluster")
		}
	} else if onCommandLine {
		return nil, nil
	} else {
		var err error
		if name, err = conf.Env("SCHED_CLUSTER"); err != nil || name == "" {
			return nil, err
		}
		if url, err := conf.Env("SCHED_URL"); err != nil || url != "" {
			return nil, usageError("SCHED_CLUSTER and SCHED_URL exclude each other").WithHint("unset one of them: each selects a cluster")
		}
	}
	path, err := clustersFile()
	if err != nil {
		return nil, err
	}
	list, err := readClusters(path)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, c := range list {
		if c.name == name {
			return &c, nil
		}
		names = append(names, printable.Text(c.name))
	}
	return nil, errs.New(errs.NotFound, "cluster %s is not in %s", printable.Text(name), printable.Text(path)).
		WithHint("it lists %s", strings.Join(names, ", "))
}

// completeClusters completes the name of a cluster.
func completeClusters(*cobra.Command, []string, string) (names []string, _ cobra.ShellCompDirective) {
	if path, err := clustersFile(); err == nil {
		list, _ := readClusters(path)
		for _, c := range list {
			names = append(names, c.name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func clustersCommand() *cobra.Command {
	return setRun(&cobra.Command{
		Use:   "clusters",
		Short: "List the clusters that --cluster can name",
		Long: `clusters lists the clusters in the file that SCHED_CLUSTERS_FILE names, in
~/.config/sched/clusters, or in /etc/sched/clusters, with the addresses of their gateways and
the files with the user's tokens. It sends no request.`,
		Args: atMost(0, ""),
	}, func(cmd *cobra.Command, _ []string) error {
		path, err := clustersFile()
		if err != nil {
			return err
		}
		list, err := readClusters(path)
		if err != nil {
			return err
		}
		t := table.New(table.Column{Heading: "CLUSTER"}, table.Column{Heading: "ADDRESS"}, table.Column{Heading: "TOKEN"})
		for _, c := range list {
			t.Add(table.Cell{Text: c.name}, table.Cell{Text: c.url}, table.Cell{Text: c.tokenFile})
		}
		out := cmd.OutOrStdout()
		return t.Write(out, table.TerminalOf(out).Style())
	})
}
