// Package self implements the steps by which an unprivileged process confines
// itself before it serves. The process creates its root directory if it starts
// in its own namespaces (SetUpNamespaces), and drops what it does not need
// (Confine, LimitTasks). Then it compares the kernel's reports about itself
// with the attributes that the parent sent (VerifyAttributes). The parent does
// not link this package.
package self
