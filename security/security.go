// Package security has the judgements that come before a process serves: may this
// identity serve at all, which capabilities stay, and
// is the worker really in the cage it was put in.
//
// It decides on numbers and descriptors that the caller gives it; it looks up no
// name and starts no process. The parent uses CheckIdentity, MarkCloseOnExec and
// KeepCapabilities; the worker Confine, Measure and Compare.
//
// There is room for more of the cage: seccomp, Landlock and network namespaces become
// a step in Confine, a field of Cage and a line in Measure.
package security
