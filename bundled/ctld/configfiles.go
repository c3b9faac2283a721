package ctld

import (
	"context"
	"path/filepath"

	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/internal/guard"
	"schedrestd/internal/guard/content"
	"schedrestd/model"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// maxConfigFile limits a file of the configuration, as package conf does.
const maxConfigFile = 8 << 20

// configFiles returns the files to send to machines that have no configuration,
// or nil if the configuration does not permit this. These are the
// configuration file and the files below its directory that it includes. They
// are read once, so that the controller sends what it uses itself.
func configFiles(c *conf.Cluster) (list []model.ConfigFile, err error) {
	if !c.Configless {
		return nil, nil
	}
	for i, path := range c.Files {
		name := conf.MainFile
		if i > 0 {
			if name, err = filepath.Rel(filepath.Dir(c.Path), path); err != nil || !filepath.IsLocal(name) {
				continue // a machine without this file must have its own
			}
		}
		text, _, err := content.Read(path, guard.Configuration, maxConfigFile)
		if err != nil {
			return nil, errs.Wrap(err, errs.Internal, "read the configuration for other machines")
		}
		list = append(list, model.ConfigFile{Name: name, Text: string(text), Exists: true})
	}
	return list, nil
}

// handleConfigFiles returns the configuration files. Like Slurm's controller, it
// sends them to every authenticated user.
func (c *Controller) handleConfigFiles(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.ConfigFilesRequest
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	if c.cfg.ConfigFiles == nil {
		return 0, nil, refuse(errs.Invalid, fault.ConfiglessDisabled, "the controller's configuration has no SchedctldParameters=enable_configless")
	}
	return message.ResponseConfigFiles, &message.ConfigFiles{Files: c.cfg.ConfigFiles}, nil
}
