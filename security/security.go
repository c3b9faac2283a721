// Package security has the judgements that come before a process serves: may this
// identity serve at all, which capabilities stay, and
// is the worker really in the cage it was put in.
//
// It decides on numbers and descriptors that the caller gives it; it looks up no
// name and starts no process. The parent uses CheckIdentity, CloseInherited and
// KeepCapabilities; the worker Confine, Measure and Compare.
//
// The last step of the cage, which only who lives in it can link, is package seal: no files, and a list of the
// system calls that are left. Namespaces and the root are the parent's to enter (package privsep).
package security
