package option

import "schedrestd/ipc/work"

// setRegister stores the path of the register of gateway tokens.
func (o *Options) setRegister(name, v string) error {
	if len(v) > work.MaxText {
		return invalid(name, v, " is longer than %d bytes", work.MaxText)
	}
	return path(&o.Setup.Register)(name, v)
}
