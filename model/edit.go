package model

// Editor looks at the records of the accounting daemon and changes them, within
// one transaction: all of its changes are kept, or none.
type Editor interface {
	// List lists records like Accounting.List, with the changes of this transaction.
	List(Listing) error

	// Change makes a change: an Add, a Modify, a Remove, or one of the types below.
	// It returns the daemon's description of each changed record. It is no error
	// if no record was changed.
	Change(change any) ([]string, error)
}

// Add adds records: accounts, associations, clusters, QOS, users or workload keys.
// A new account or user has no association.
type Add[T any] struct{ Records []T }

// Modify changes what Record has set of the records that Filter selects. Start
// Record with one of the functions whose name begins with Blank.
type Modify[T any] struct {
	Filter Filter[T]
	Record T
}

// Remove removes the records that Filter selects.
type Remove[T any] struct{ Filter Filter[T] }

// AddCoordinators makes users coordinators of accounts.
type AddCoordinators struct{ Accounts, Users []string }

// RemoveCoordinators is the reverse of AddCoordinators.
type RemoveCoordinators struct{ Accounts, Users []string }

// AddAccountsTo adds accounts that do not exist yet, and gives them associations
// in clusters; no clusters: in all. Daemons have it from Slurm 23.11 on.
type AddAccountsTo struct {
	AssocSet
	Account Account // what the new ones have in common
}

// AddUsersTo adds users that do not exist yet, and associations of users with accounts.
type AddUsersTo struct {
	AssocSet
	User User // what the new ones have in common
}

// AssocSet names associations: every combination of its elements.
type AssocSet struct {
	Accounts   []string
	Assoc      Association // what the new ones have in common
	Clusters   []string
	Partitions []string
	Users      []string
	WCKeys     []string
}

// Values that leave a field of a record as it is, where the field has no Opt.
const (
	Leave16 uint16 = 0xfffe
	Leave32 uint32 = 0xfffffffe
)

// QOSLeaveFlags in the flags of a QOS leaves them as they are.
const QOSLeaveFlags uint32 = 1 << 28

// BlankAssociation returns an association with nothing set.
func BlankAssociation() Association {
	return Association{DefaultQOSID: Leave32, Shares: Leave32, Left: Leave32, Right: Leave32, ParentID: Leave32, UserID: Leave32}
}

// BlankQOS returns a QOS with nothing set.
func BlankQOS() QOS {
	return QOS{Flags: QOSLeaveFlags, GraceTime: Leave32, PreemptMode: Leave16,
		UsageFactor: FloatNotSet, UsageThreshold: FloatNotSet, LimitFactor: FloatNotSet}
}

// BlankUser returns a user with nothing set.
func BlankUser() User { return User{DefaultQOSID: Leave32, UserID: Leave32} }

// BlankCluster returns a cluster with nothing set.
func BlankCluster() Cluster { return Cluster{Flags: Leave32, RootAssoc: BlankAssociation()} }

// BlankWCKey returns a workload key with nothing set.
func BlankWCKey() WCKey { return WCKey{UserID: Leave32} }

// BlankAccountingJob returns a recorded job with nothing set.
func BlankAccountingJob() AccountingJob { return AccountingJob{DerivedExitCode: Leave32} }
