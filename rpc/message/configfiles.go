package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// ConfigFilesRequest requests the configuration files that a client needs
// (table config_request). The controller answers any authenticated user.
type ConfigFilesRequest struct {
	Flags uint32 // 0: the files of clients; 1: those of node daemons
	Port  uint16 // of a sackd that wants later versions of the files; 0 for none
}

// Walk encodes or decodes the fields in wire order.
func (m *ConfigFilesRequest) Walk(c *codec.Codec) {
	c.Uint32("flags", &m.Flags)
	if c.Since(codec.V2505) {
		c.Uint16("port", &m.Port)
	}
}

// ConfigFiles answers ConfigFilesRequest (table config_response).
type ConfigFiles struct {
	Files    []model.ConfigFile
	SpoolDir string // for node daemons
}

// Walk encodes or decodes the fields in wire order.
func (m *ConfigFiles) Walk(c *codec.Codec) {
	codec.List(c, "config_files", "config_file", &m.Files, configFile)
	c.String("slurmd_spooldir", &m.SpoolDir)
}

func configFile(c *codec.Codec, f *model.ConfigFile) {
	c.Bool("exists", &f.Exists)
	if c.Since(codec.V2311) {
		c.Bool("execute", &f.Executable)
	}
	c.String("file_name", &f.Name)
	c.String("file_content", &f.Text)
}
