package limit

import "schedrestd/internal/penalty"

// What is remembered about clients that commit offences. The costs are settings
// (SCHEDRESTD_PENALTIES).
var (
	SourceDebts = penalty.Row{Name: "debts of sources", Process: "dispatcher", Key: "source", Size: 10_000}

	// The dispatcher can't tell the clients of a proxy apart.
	ForwardedDebts = penalty.Row{Name: "debts of sources behind proxies", Process: "worker", Key: "source", Size: 10_000}
)

// Penalties lists all rows of penalties, in the order of the page.
var Penalties = []penalty.Row{SourceDebts, ForwardedDebts}
