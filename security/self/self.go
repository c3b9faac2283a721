// Package self implements the steps by which an unprivileged process confines
// itself before it serves. If the process starts in its own namespaces, it
// creates its root directory (SetUpNamespaces). It drops what it does not need
// (Confine, LimitTasks). Then it compares the attributes that the kernel
// reports with those that the parent sent (VerifyAttributes). The parent does
// not link this package.
package self
