// Package docs contains the documentation that programs show.
package docs

import _ "embed"

// Troubleshooting is the page with the table of symptoms, log lines, causes and
// remedies.
//
//go:embed TROUBLESHOOTING.md
var Troubleshooting string
