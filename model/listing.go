package model

// Filter selects records of the accounting daemon. T is the type of the records.
type Filter[T any] interface{ selects(T) }

func (AccountFilter) selects(Account)             {}
func (AccountingJobFilter) selects(AccountingJob) {}
func (AssocFilter) selects(Association)           {}
func (ClusterFilter) selects(Cluster)             {}
func (InstanceFilter) selects(Instance)           {}
func (QOSFilter) selects(QOS)                     {}
func (TRESFilter) selects(TRES)                   {}
func (UserFilter) selects(User)                   {}
func (WCKeyFilter) selects(WCKey)                 {}

// Listing asks the accounting daemon for records. List makes one.
type Listing struct {
	Filter any // a Filter of some T
	Each   any // func(*T) error
}

// List asks for the records that filter selects. Each gets them one at a time; a
// record is valid during the call only, and an error of each ends the listing and
// is returned as it is.
func List[T any](filter Filter[T], each func(*T) error) Listing { return Listing{filter, each} }
