package cluster

import (
	"cmp"
	"math"
	"slices"

	"schedrestd/internal/errs"
	"schedrestd/metric/exposition"
	"schedrestd/model"
)

// fairShare holds the shares of accounts and users. The method write sorts
// them.
type fairShare struct{ accounts, users []share }

// share holds the values of a model.Share that are written as metrics.
type share struct {
	account, user, partition             string
	factor, level, shares, usage, weight float64 // weight is the usage in TRES seconds
}

// Share adds the fair share of an association: an account, or a user in an
// account. It adds associations of users only if By.User is set, and
// associations of accounts only if By.Account is set.
func (c *Counts) Share(s *model.Share) error {
	list, enabled, label := &c.fairShare.accounts, c.by.Account, "account"
	record := share{
		account: s.Name,
		factor:  s.Factor,
		level:   s.Level,
		shares:  s.SharesNormalized,
		usage:   s.EffectiveUsage,
		weight:  float64(s.Usage),
	}
	if s.User {
		list, enabled, label = &c.fairShare.users, c.by.User, "user"
		record.account, record.user, record.partition = s.Parent, s.Name, s.Partition
	}
	if !enabled {
		return nil
	}
	if len(*list) >= maxValues {
		return errs.New(errs.Invalid, "there are more than %d associations of %ss", maxValues, label).
			WithHint("leave %q out of the parameter by", label).WithSource("query/by")
	}
	record.account, record.user = exposition.Text(record.account), exposition.Text(record.user)
	record.partition = exposition.Text(record.partition)
	*list = append(*list, record)
	return nil
}

// compareShares orders shares by their labels.
func compareShares(a, b share) int {
	return cmp.Or(cmp.Compare(a.account, b.account), cmp.Compare(a.user, b.user), cmp.Compare(a.partition, b.partition))
}

// shareMeasures are the metrics of a share.
var shareMeasures = []measure[share]{
	{"_factor", "Fair share factor, from 0 to 1.", func(s *share) float64 { return s.factor }},
	{"_level", "Fair share among the siblings in the tree; below 1 if the usage exceeds the share.", func(s *share) float64 { return s.level }},
	{"_shares", "Fraction of all shares, from 0 to 1.", func(s *share) float64 { return s.shares }},
	{"_usage", "Effective fraction of all usage, from 0 to 1.", func(s *share) float64 { return s.usage }},
	{"_usage_tres_seconds", "Weighted usage in TRES seconds; it decays with time.", func(s *share) float64 { return s.weight }},
}

func (f *fairShare) write(w *exposition.Writer, by By) {
	if by.Account {
		writeShares(w, Prefix+"account_fairshare", f.accounts, func(s *share) []string { return []string{"account", s.account} })
	}
	if by.User {
		writeShares(w, Prefix+"user_fairshare", f.users, func(s *share) []string {
			return []string{"account", s.account, "username", s.user, "partition", s.partition}
		})
	}
}

// writeShares writes the metrics of the shares in list. It omits values that
// are not set. If several shares have the same labels, it writes only the first
// one. Controllers never send several shares with the same labels.
func writeShares(w *exposition.Writer, prefix string, list []share, labels func(*share) []string) {
	slices.SortStableFunc(list, compareShares)
	list = slices.CompactFunc(list, func(a, b share) bool { return compareShares(a, b) == 0 })
	if len(list) == 0 {
		return
	}
	for _, m := range shareMeasures {
		w.Family(prefix+m.name, exposition.Gauge, m.help)
		for i := range list {
			if v := m.value(&list[i]); v != model.FloatNotSet {
				w.Sample(prefix+m.name, unlimited(v), labels(&list[i])...)
			}
		}
	}
}

// unlimited returns v, or +Inf if v is Slurm's value for "unlimited".
func unlimited(v float64) float64 {
	if v == model.FloatInfinite {
		return math.Inf(1)
	}
	return v
}
