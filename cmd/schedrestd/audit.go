package main

import "schedrestd/errs"

// setAudit takes where changes are recorded. Whether it can be used is judged when it is opened.
func setAudit(o *options, v string) error {
	o.audit.Path = v
	return nil
}

// setWord takes one of two words, the first of which stands for true.
func setWord(of func(*options) *bool, name, yes, no string) func(*options, string) error {
	return func(o *options, v string) error {
		if v != yes && v != no {
			return errs.New(errs.Invalid, "environment: %s=%s", name, v).WithHint("allowed is %s or %s", yes, no)
		}
		*of(o) = v == yes
		return nil
	}
}
