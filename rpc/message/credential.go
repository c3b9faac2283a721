package message

import "schedrestd/rpc/codec"

// Numbers of the authentication plugins.
const (
	PluginNone  uint32 = 100 // no identity: the sender is unknown, or known by other means
	PluginMunge uint32 = 101
	PluginJWT   uint32 = 102
	PluginSlurm uint32 = 103
)

// Credential identifies the sender (table auth_cred).
//
// On a UNIX socket, PluginNone stands for this project's auth/cred: the kernel
// identifies the sender. On TCP, PluginNone proves nothing, so the bundled
// daemons refuse it.
type Credential struct {
	Plugin uint32
	Text   string // for PluginMunge and PluginSlurm: the credential
	Token  string // for PluginJWT: the token in compact form
	ActAs  string // for PluginJWT: the user to act as; "" for the token's own user
}

// Walk encodes or decodes the fields in wire order.
func (a *Credential) Walk(c *codec.Codec) {
	c.Uint32("plugin_id", &a.Plugin)
	if c.If("plugin_id == 101", a.Plugin == PluginMunge) {
		c.String("credential", &a.Text)
	}
	c.EndIf()
	if c.If("plugin_id == 102", a.Plugin == PluginJWT) {
		c.String("token", &a.Token)
		c.String("username", &a.ActAs)
	}
	c.EndIf()
	if c.If("plugin_id == 103", a.Plugin == PluginSlurm) {
		c.String("credential", &a.Text)
	}
	c.EndIf()
}
