package client

import (
	"context"
	"slices"

	"schedrestd/model"
	"schedrestd/rpc/message"
	"schedrestd/rpc/payload"
)

// credentialFunc returns a function that creates the credential for a message
// to d. Each attempt calls the function again, because a credential from munged
// or auth/slurm is valid for one message only.
func (c *caller) credentialFunc(ctx context.Context, d *daemon, cred model.Credential) message.CredentialFunc {
	switch {
	case cred.Gateway && c.cfg.Stamp != nil:
		plugin := message.PluginMunge
		if c.cfg.StampSlurm {
			plugin = message.PluginSlurm
		}
		return func(t message.Type, body []byte) (*message.Credential, error) {
			text, err := c.cfg.Stamp(ctx, cred.Token, cred.ActAs, uint16(t), body)
			return &message.Credential{Plugin: plugin, Text: text}, err
		}
	case cred.Gateway:
		return func(message.Type, []byte) (*message.Credential, error) {
			token, err := c.cfg.Bearer(ctx, cred.Token, cred.ActAs)
			return &message.Credential{Plugin: message.PluginJWT, Token: token}, err
		}
	case !cred.Local():
		return message.FixedCredential(&message.Credential{Plugin: message.PluginJWT, Token: cred.Token, ActAs: cred.ActAs})
	case c.usesIssuer(d) && c.cfg.Sack != nil:
		return func(t message.Type, body []byte) (*message.Credential, error) {
			text, err := c.cfg.Sack.Encode(ctx, payload.Of(uint16(t), body), c.cfg.MungeUID)
			return &message.Credential{Plugin: message.PluginSlurm, Text: text}, err
		}
	case c.usesIssuer(d):
		return func(t message.Type, body []byte) (*message.Credential, error) {
			text, err := c.cfg.Munge.Encode(ctx, payload.Of(uint16(t), body), c.cfg.MungeUID)
			return &message.Credential{Plugin: message.PluginMunge, Text: text}, err
		}
	}
	// With auth/cred, the daemon asks the kernel which user runs this process.
	// The kernel can answer only for UNIX sockets, so connect uses only
	// addresses of network "unix" for such credentials.
	return message.FixedCredential(&message.Credential{Plugin: message.PluginNone})
}

// usesIssuer reports whether the local credentials for d come from munged or a
// sack.socket. If d has a UNIX socket, neither is used, because d asks the
// kernel which user runs this process.
func (c *caller) usesIssuer(d *daemon) bool {
	hasUnix := slices.ContainsFunc(d.addresses, func(a Address) bool { return a.Network == "unix" })
	return (c.cfg.Munge != nil || c.cfg.Sack != nil) && !hasUnix
}
