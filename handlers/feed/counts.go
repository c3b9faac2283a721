package feed

// A Counter counts for the metrics. It adds n to what; n is negative only for
// what exists at present. A nil Counter counts nothing.
type Counter func(what Count, n int)

// Count is something that is counted.
type Count uint8

// What is counted: by this package, and for the clients of feeds by package rest.
const (
	// What exists at present.
	Waits   Count = iota // requests that wait for a change
	Streams              // streams of events
	Readers              // feeds

	// Passes of feeds.
	ReadChanged   // a record has changed
	ReadUnchanged // nothing has changed
	ReadFailed
	Saved // requests to the controller that clients would have caused in addition, if each of them had polled as often as the feed

	// Requests that have waited, by what ended the wait.
	WaitChanged // a change that the request may show
	WaitTimeout // the time was over
	WaitStopped // the server, for example because it drains
	WaitLeft    // the client has left
	WaitFailed  // the credential was refused, or the request could not go on
	Wakes       // how often a request that waited was carried out again

	// Events that were sent.
	EventSnapshot
	EventAdded
	EventChanged
	EventRemoved
	EventReset
	EventEnd
	EventLate
)

// add adds n to what.
func (c Counter) add(what Count, n int) {
	if c != nil {
		c(what, n)
	}
}
