package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// SharesRequest requests fair shares (table shares_request). A nil list selects
// all accounts or users.
type SharesRequest struct {
	Accounts []string
	Users    []string
}

// Walk encodes or decodes the fields in wire order.
func (m *SharesRequest) Walk(c *codec.Codec) {
	texts(c, "acct_list", &m.Accounts)
	texts(c, "user_list", &m.Users)
}

// Shares answers SharesRequest (table shares_response). TRESNames is decoded
// before the first element of Shares.
type Shares struct {
	TRESNames   []string
	Shares      codec.Stream[model.Share]
	TotalShares uint64
}

// Walk encodes or decodes the fields in wire order.
func (m *Shares) Walk(c *codec.Codec) {
	c.Strings("tres_names", &m.TRESNames)
	codec.StreamList(c, "assoc_shares_list", "assoc_shares_record", &m.Shares, share)
	c.Uint64("tot_shares", &m.TotalShares)
}

// share encodes or decodes one element of Shares.Shares (table
// assoc_shares_record).
func share(c *codec.Codec, s *model.Share) {
	c.Uint32("assoc_id", &s.AssocID)
	c.String("cluster", &s.Cluster)
	c.String("name", &s.Name)
	c.String("parent", &s.Parent)
	c.String("partition", &s.Partition)
	c.Float("shares_norm", &s.SharesNormalized)
	c.OptUint32("shares_raw", &s.Shares)
	codec.Array(c, "tres_run_secs", "u64", &s.TRESRunSeconds, optUint64)
	codec.Array(c, "tres_grp_mins", "u64", &s.TRESGroupMinutes, optUint64)
	c.Float("usage_efctv", &s.EffectiveUsage)
	c.Float("usage_norm", &s.UsageNormalized)
	c.Uint64("usage_raw", &s.Usage)
	decimals(c, "usage_tres_raw", &s.TRESUsage)
	c.Float("fs_factor", &s.Factor)
	c.Float("level_fs", &s.Level)
	flag16(c, "user", &s.User)
}

func optUint64(c *codec.Codec, v *model.Opt[uint64]) { c.OptUint64("", v) }
