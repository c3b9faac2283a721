package model

// Floating-point values for "not set" and "unlimited". They equal the 32-bit
// integers NO_VAL and INFINITE. "Unlimited" may also be +Inf.
const (
	FloatNotSet   float64 = 0xfffffffe
	FloatInfinite float64 = 0xffffffff
)

// Share is the fair share and the usage of an association, which belongs to an
// account or a user.
type Share struct {
	AssocID          uint32
	Cluster          string
	Name             string // name of the account, or of the user if User is set
	Parent           string // parent account
	Partition        string
	SharesNormalized float64     // may be FloatNotSet, like all floating-point numbers here
	Shares           Opt[uint32] // not set for the parent's
	TRESRunSeconds   []Opt[uint64]
	TRESGroupMinutes []Opt[uint64] // limits
	EffectiveUsage   float64
	UsageNormalized  float64
	Usage            uint64    // TRES seconds, weighted
	TRESUsage        []float64 // in TRES seconds; this list and the other two have an element for each name in SharesTotals
	Factor           float64   // fair share factor
	Level            float64   // factor at this level; infinite without usage
	User             bool      // false for an account
}

// SharesTotals contains the values that are the same for all shares.
type SharesTotals struct {
	TRESNames []string
	Shares    uint64
}
