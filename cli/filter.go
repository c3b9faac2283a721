package cli

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"schedrestd/cli/rest"
	"schedrestd/internal/printable"
	"schedrestd/internal/typo"
	"schedrestd/model"
)

// A filter selects jobs. An empty list does not restrict the selection, with
// one exception: if states is empty and all is not set, the filter selects only
// active jobs.
type filter struct {
	users, states, partitions, accounts, names, nodes []string
	qos, clusters                                     []string // of other records than jobs
	me, all                                           bool

	seen map[seenName]bool // in the objects that the filter has selected
}

// flags declares the options of the filter.
func (f *filter) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVarP(&f.users, "user", "u", nil, "jobs of these `USERS`")
	flags.BoolVar(&f.me, "me", false, "your own jobs: those of the token's user")
	flags.StringSliceVarP(&f.states, "state", "t", nil, "jobs in these `STATES`, such as PENDING or R")
	flags.StringSliceVarP(&f.partitions, "partition", "p", nil, "jobs in these `PARTITIONS`")
	accountFlag(flags, &f.accounts, "A", "jobs of these `ACCOUNTS`")
	flags.StringSliceVarP(&f.names, "name", "n", nil, "jobs with these `NAMES`")
	flags.StringArrayVarP(&f.nodes, "node", "w", nil, "jobs on these `NODES`, such as n1,n[3-5]")
	cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(stateNames(), cobra.ShellCompDirectiveNoFileComp))
	for _, name := range []string{"user", "account", "name"} {
		cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}

// accountFlag declares the option --account. Slurm ignores the case of accounts, whose
// names it stores in lower case.
func accountFlag(flags *pflag.FlagSet, accounts *[]string, short, usage string) {
	flags.StringSliceVarP(accounts, "account", short, nil, usage)
	f := flags.Lookup("account")
	f.Value, f.DefValue = lowerCase{f.Value, f.Value.(pflag.SliceValue)}, "" // otherwise the help would show an empty list
}

// A lowerCase is a list of words that an option converts to lower case.
type lowerCase struct {
	pflag.Value
	pflag.SliceValue
}

func (v lowerCase) Set(text string) error { return v.Value.Set(strings.ToLower(text)) }

// hasCondition reports whether the filter has any condition.
func (f *filter) hasCondition() bool {
	return f.me || len(f.users)+len(f.states)+len(f.partitions)+len(f.accounts)+len(f.names)+len(f.nodes) > 0
}

// shortStates contains the full names of states, keyed by the abbreviations
// that squeue shows.
var shortStates = map[string]string{
	"BF": "BOOT_FAIL", "CA": "CANCELLED", "CD": "COMPLETED", "CF": "CONFIGURING", "CG": "COMPLETING", "DL": "DEADLINE",
	"EX": "EXPEDITING", "F": "FAILED", "LF": "LAUNCH_FAILED", "NF": "NODE_FAIL", "OOM": "OUT_OF_MEMORY", "PD": "PENDING",
	"PF": "POWER_UP_NODE", "PR": "PREEMPTED", "R": "RUNNING", "RD": "RESV_DEL_HOLD", "RF": "REQUEUE_FED",
	"RH": "REQUEUE_HOLD", "RQ": "REQUEUED", "RS": "RESIZING", "S": "SUSPENDED", "SE": "SPECIAL_EXIT", "SI": "SIGNALING",
	"SO": "STAGE_OUT", "ST": "STOPPED", "TO": "TIMEOUT",
}

// stateNames returns the full names of all states, sorted.
func stateNames() []string { return slices.Sorted(maps.Values(shortStates)) }

// check replaces abbreviations of states with their full names. It returns an
// error if a state is unknown.
func (f *filter) check() error {
	var err error
	if f.nodes, err = expandHosts("--node", f.nodes); err != nil {
		return err
	}
	allStates := false
	for i, s := range f.states {
		s = strings.ToUpper(s)
		if name := shortStates[s]; name != "" {
			s = name
		}
		switch {
		case s == "ALL":
			allStates = true
		case !slices.Contains(stateNames(), s):
			err := usageError("--state %s: unknown state", printable.Text(f.states[i]))
			if near := typo.Nearest(s, stateNames()); near != "" {
				return err.WithHint("did you mean %s? All states: %s", near, strings.Join(stateNames(), ", "))
			}
			return err.WithHint("states are %s", strings.Join(stateNames(), ", "))
		}
		f.states[i] = s
	}
	if allStates {
		f.states, f.all = nil, true
	}
	return nil
}

// dialWithFilter checks f and connects to the server. If the option --me is
// given, dialWithFilter makes f select the jobs of the connection's user.
func (o *options) dialWithFilter(ctx context.Context, f *filter) (*connection, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	c, err := o.dial(ctx)
	if err == nil {
		err = f.setUser(c.user)
	}
	return c, err
}

// setUser makes --me stand for user.
func (f *filter) setUser(user string) error {
	if f.me {
		if user == "" {
			return usageError("--me: the token does not name a user").WithHint("use --user NAME")
		}
		f.users, f.me = append(f.users, user), false
	}
	return nil
}

// matches reports whether f selects j.
func (f *filter) matches(j *rest.Job) bool {
	switch {
	case len(f.states) > 0:
		if !slices.ContainsFunc(j.State, func(s string) bool { return slices.Contains(f.states, s) }) {
			return false
		}
	case !f.all && !j.Active():
		return false
	}
	partitions := strings.Split(j.Partition, ",")
	node := slices.IndexFunc(f.nodes, func(n string) bool { return model.HostlistHas(j.Nodes, n) })
	if len(f.nodes) > 0 && node < 0 || !hasAny(f.users, j.User) || !hasAny(f.accounts, strings.ToLower(j.Account)) || !hasAny(f.names, j.Name) || !hasAny(f.partitions, partitions...) {
		return false
	}
	f.see(&userKind, f.users, j.User)
	f.see(&accountKind, f.accounts, j.Account)
	f.see(&partitionKind, f.partitions, partitions...)
	if node >= 0 {
		f.see(&nodeKind, f.nodes, f.nodes[node])
	}
	return true
}

// hasAny reports whether at least one of the values is in list. An empty list
// stands for all values.
func hasAny(list []string, values ...string) bool {
	return len(list) == 0 || slices.ContainsFunc(values, func(v string) bool { return slices.Contains(list, v) })
}
