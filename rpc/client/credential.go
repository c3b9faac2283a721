package client

import (
	"context"
	"slices"

	"schedrestd/model"
	"schedrestd/rpc/message"
	"schedrestd/rpc/munge"
)

// seal returns the function that makes the credential of one message to d. A
// credential of munged or of auth/slurm is valid for this body: each attempt has
// its own.
func (c *caller) seal(ctx context.Context, d *daemon, cred model.Credential) message.Sealer {
	switch {
	case !cred.Local():
		return message.Sealed(&message.Credential{Plugin: message.PluginJWT, Token: cred.Token, ActAs: cred.ActAs})
	case c.issued(d) && c.cfg.Sack != nil:
		return func(t message.Type, body []byte) (*message.Credential, error) {
			text, err := c.cfg.Sack.Encode(ctx, munge.Payload(uint16(t), body), c.cfg.MungeUID)
			return &message.Credential{Plugin: message.PluginSlurm, Text: text}, err
		}
	case c.issued(d):
		return func(t message.Type, body []byte) (*message.Credential, error) {
			text, err := c.cfg.Munge.Encode(ctx, munge.Payload(uint16(t), body), c.cfg.MungeUID)
			return &message.Credential{Plugin: message.PluginMunge, Text: text}, err
		}
	}
	// The kernel's credentials count as auth/cred: only addresses of network
	// "unix" are used for them.
	return message.Sealed(&message.Credential{Plugin: message.PluginNone})
}

// issued reports whether munged or a sack.socket authenticates local credentials
// towards d. On a UNIX socket the kernel does it, and the bundled daemons accept
// that.
func (c *caller) issued(d *daemon) bool {
	return (c.cfg.Munge != nil || c.cfg.Sack != nil) && !slices.ContainsFunc(d.addresses, func(a Address) bool { return a.Network == "unix" })
}
