package model

// Account is an account in the records of the accounting daemon.
type Account struct {
	Associations []Association // set only if requested
	Coordinators []Coordinator // set only if requested
	Description  Text
	Flags        uint32
	Name         string
	Organization Text
}

// Coordinator is a user who coordinates an account (Account.Coordinators), or
// an account that a user coordinates (User.Coordinates).
type Coordinator struct {
	Name   string
	Direct Opt[uint16] // 0 if only through a parent account
}

// AccountFilter selects accounts. The names of the accounts to select are in
// the field Assoc.
type AccountFilter struct {
	Assoc         AssocFilter
	Descriptions  []string
	Flags         AccountFilterFlags
	Organizations []string
}

func (AccountFilter) selects(Account) {}

// AccountFilterFlags are flags that select accounts and the details to return.
type AccountFilterFlags uint32

// The bits of AccountFilterFlags, with the values that they have from protocol
// 41 on.
const (
	AccountWithDeleted AccountFilterFlags = 1 << iota
	AccountWithAssocs
	AccountWithCoordinators
)
