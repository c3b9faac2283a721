package client

import (
	"context"
	"slices"

	"schedrestd/model"
	"schedrestd/rpc/message"
	"schedrestd/rpc/munge"
)

// credentialFunc returns a function that creates the credential of a message to
// d. A credential of munged or of auth/slurm is valid only for one message, so
// each attempt gets its own.
func (c *caller) credentialFunc(ctx context.Context, d *daemon, cred model.Credential) message.CredentialFunc {
	switch {
	case !cred.Local():
		return message.FixedCredential(&message.Credential{Plugin: message.PluginJWT, Token: cred.Token, ActAs: cred.ActAs})
	case c.usesIssuer(d) && c.cfg.Sack != nil:
		return func(t message.Type, body []byte) (*message.Credential, error) {
			text, err := c.cfg.Sack.Encode(ctx, munge.Payload(uint16(t), body), c.cfg.MungeUID)
			return &message.Credential{Plugin: message.PluginSlurm, Text: text}, err
		}
	case c.usesIssuer(d):
		return func(t message.Type, body []byte) (*message.Credential, error) {
			text, err := c.cfg.Munge.Encode(ctx, munge.Payload(uint16(t), body), c.cfg.MungeUID)
			return &message.Credential{Plugin: message.PluginMunge, Text: text}, err
		}
	}
	// With auth/cred a daemon relies on the kernel to identify this
	// process. The kernel can identify it only on UNIX sockets, so connect
	// uses only addresses of network "unix" for such credentials.
	return message.FixedCredential(&message.Credential{Plugin: message.PluginNone})
}

// usesIssuer reports whether munged or a sack.socket issues the local
// credentials for d. If d has a UNIX socket, neither is needed, because d asks
// the kernel which user runs this process.
func (c *caller) usesIssuer(d *daemon) bool {
	hasUnix := slices.ContainsFunc(d.addresses, func(a Address) bool { return a.Network == "unix" })
	return (c.cfg.Munge != nil || c.cfg.Sack != nil) && !hasUnix
}
