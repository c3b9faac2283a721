package plan

import (
	"schedrestd/conf"
	"schedrestd/gateway/plan/option"
	"schedrestd/ipc"
)

// options holds the settings from the command line and the environment, and what
// the parent has sent at the start.
type options struct {
	option.Options
	host  host
	start ipc.ConfigSetup

	signingKey string // path of the key with which the keeper signs credentials; "": none
}

// reader returns a reader of configuration files. The parent opens the files.
func (o *options) reader() conf.Reader { return conf.Reader{Files: o.host} }
