package model

import (
	"context"
	"errors"
)

// ErrRestart is the error of a transaction that must start again, because other
// clients have changed what it read. Nothing of it is committed.
var ErrRestart = errors.New("other clients have changed the records")

// Editor reads and changes records of the accounting daemon in one transaction.
// Either all changes of a transaction are committed, or none.
type Editor interface {
	// List lists records as Accounting.List does. The records include the
	// changes that this transaction has made.
	List(Listing) error

	// Context returns the context for other calls to the accounting daemon while
	// the transaction is open. Once a change has been made, it does not end
	// when the client leaves.
	Context() context.Context

	// Change makes a change. The argument is one of the types below whose names
	// begin with Add, Modify or Remove. Change returns the daemon's description
	// of each changed record. A change that affects no record is not an error.
	Change(change any) ([]string, error)
}

// Add adds records: accounts, associations, clusters, QOS, users or workload
// keys. An account or user that is added has no association.
type Add[T any] struct{ Records []T }

// Modify changes all records that Filter selects. In each of them, it sets the
// fields that are set in Record. To create Record, use one of the functions
// whose names begin with Blank.
type Modify[T any] struct {
	Filter Filter[T]
	Record T
}

// Remove removes the records that Filter selects.
type Remove[T any] struct{ Filter Filter[T] }

// AddCoordinators makes users coordinators of accounts.
type AddCoordinators struct{ Accounts, Users []string }

// RemoveCoordinators removes users from the coordinators of accounts.
type RemoveCoordinators struct{ Accounts, Users []string }

// AddAccountsWithAssocs adds the accounts in Accounts that do not exist yet. It
// also associates every account in Accounts, new or existing, with every
// cluster in Clusters. If Clusters is empty, it associates the accounts with
// all clusters. Daemons support this change from Slurm 23.11 on.
type AddAccountsWithAssocs struct {
	AssocSet
	Account Account // values that all new accounts get
}

// AddUsersWithAssocs adds the users in Users that do not exist yet. It also
// associates every user in Users, new or existing, with every account in
// Accounts.
type AddUsersWithAssocs struct {
	AssocSet
	User User // values that all new users get
}

// AssocSet names associations, one for each combination of elements of its
// lists.
type AssocSet struct {
	Accounts   []string
	Assoc      Association // values that all new associations get
	Clusters   []string
	Partitions []string
	Users      []string
	WCKeys     []string
}

// Values that leave a field of a record unchanged, for fields whose type is not
// Opt.
const (
	NoVal16 uint16 = 0xfffe
	NoVal32 uint32 = 0xfffffffe
)

// QOSFlagsNotSet, as the value of QOS.Flags, leaves the flags of a record
// unchanged.
const QOSFlagsNotSet uint32 = 1 << 28

// BlankAssociation returns an association in which no field is set.
func BlankAssociation() Association {
	return Association{DefaultQOSID: NoVal32, Shares: NoVal32, Left: NoVal32, Right: NoVal32, ParentID: NoVal32, UserID: NoVal32}
}

// BlankQOS returns a QOS in which no field is set.
func BlankQOS() QOS {
	return QOS{Flags: QOSFlagsNotSet, GraceTime: NoVal32, PreemptMode: NoVal16,
		UsageFactor: FloatNotSet, UsageThreshold: FloatNotSet, LimitFactor: FloatNotSet}
}

// BlankUser returns a user in which no field is set.
func BlankUser() User { return User{DefaultQOSID: NoVal32, UserID: NoVal32} }

// BlankCluster returns a cluster in which no field is set.
func BlankCluster() Cluster { return Cluster{Flags: NoVal32, RootAssoc: BlankAssociation()} }

// BlankWCKey returns a workload key in which no field is set.
func BlankWCKey() WCKey { return WCKey{UserID: NoVal32} }

// BlankAccountingJob returns a job of the accounting daemon in which no field
// is set.
func BlankAccountingJob() AccountingJob { return AccountingJob{DerivedExitCode: NoVal32} }
