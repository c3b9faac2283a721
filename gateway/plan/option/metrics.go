package option

import (
	"schedrestd/gateway/endpoint"
	"schedrestd/internal/errs"
)

// CheckMetrics refuses an invalid address for metrics. An https:// address is
// invalid: with TLS, the exporter would also need the private key.
func (o *Options) CheckMetrics() error {
	if o.Metrics == "" {
		return nil
	}
	const hint = "use --metrics=127.0.0.1:9820, or --metrics=unix:/run/schedrestd/metrics; " +
		"put a proxy with TLS in front of it for other machines"
	e, err := endpoint.Parse(o.Metrics)
	if err != nil {
		return errs.New(errs.Invalid, "metrics: %v", err).WithHint("%s", hint)
	}
	if e.TLS {
		return errs.New(errs.Invalid, "metrics are served without TLS: %s", o.Metrics).WithHint("%s", hint)
	}
	return nil
}
