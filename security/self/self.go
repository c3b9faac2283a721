// Package self is what an unprivileged process does to itself before it serves: it makes
// its root where it was born in namespaces of its own (Settle), takes from itself what it
// does not need (Confine, LimitTasks), and compares what the kernel says about it with
// what the parent told it to expect (Prove). The parent does not link it.
package self
