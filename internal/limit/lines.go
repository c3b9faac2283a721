package limit

import (
	"time"

	"schedrestd/internal/throttle"
)

// Log lines about requests and clients. A client can cause thousands of lines a
// second, even without a token. Its lines could fill the disk, or make journald
// drop lines, which then include those of other clients. By default journald
// drops lines of a service that logs more than 10,000 lines in 30 s. Two workers
// together stay below this limit, even if each line about omitted lines follows a
// line about a request.
var (
	RequestLines = throttle.Row{Name: "log lines about requests", Process: "worker", Key: "user or source", Each: 50, All: 60, Sources: 60, Period: time.Second}
	// These are separate, so that other lines don't suppress them.
	RefusalLines = throttle.Row{Name: "log lines about refused credentials", Process: "worker", Key: "user or source", Each: 10, All: 20, Sources: 20, Period: time.Second}
	ClientLines  = throttle.Row{Name: "log lines about clients", Process: "schedctld, scheddbd", Key: "source", Each: 20, Sources: 256, Period: time.Minute}
)

// Lines lists all rows of log lines, in the order of the page.
var Lines = []throttle.Row{RequestLines, RefusalLines, ClientLines}
