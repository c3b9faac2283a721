package plan

import (
	"cmp"

	"schedrestd/conf"
	"schedrestd/gateway/plan/option"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// The functions in this file return settings that slurm.conf may contain for
// slurmrestd. As for all settings, the command line and the environment have
// precedence over the configuration.

func (o *options) maxConnections(c *conf.Cluster) uint32 {
	return min(cmp.Or(o.Run.Connections, uint32(c.Restd.Connections)), ipc.MaxConnections)
}

func (o *options) maxThreads(c *conf.Cluster) uint32 {
	return min(cmp.Or(o.Run.Threads, uint32(c.Restd.Threads)), option.MaxThreads)
}

// jsonLayout returns the layout of JSON, which is compact by default. no_tag is
// a word for YAML.
func (o *options) jsonLayout(c *conf.Cluster) work.Layout {
	if o.JSON != nil {
		return *o.JSON
	}
	layout := work.Compact
	if c != nil {
		for _, word := range c.Restd.Layout {
			if word != "no_tag" {
				option.SetLayout(&layout, word)
			}
		}
	}
	return layout
}

// yamlLayout returns the layout of YAML. By default it has no tags, as users of
// YAML expect.
func (o *options) yamlLayout(c *conf.Cluster) work.Layout {
	if o.YAML != nil {
		return *o.YAML
	}
	if len(c.Restd.Layout) == 0 {
		return work.Pretty | work.NoTag
	}
	layout := work.Pretty // Slurm's default
	for _, word := range c.Restd.Layout {
		option.SetLayout(&layout, word)
	}
	return layout
}
