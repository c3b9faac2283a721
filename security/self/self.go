// Package self is what an unprivileged process does to itself before it serves.
// It creates its root if it starts in its own namespaces (Settle), drops what
// it does not need (Confine, LimitTasks), and compares what the kernel reports
// about it with what the parent told it to expect (Prove). The parent does not
// link it.
package self
