package query

import "schedrestd/ipc"

// AskMember asks the resolver for the uid of a user, and whether the user is a
// member of a group. The keeper asks on a channel of its own: it must believe no
// worker about this.
type AskMember struct {
	ID          uint64 // chosen by the keeper and repeated in the answer
	User, Group string // names; without a Group, the user is a member of none
	Groups      bool   // the answer has the user's groups
}

func (a *AskMember) Walk(w *ipc.Walker) {
	w.Fields(&a.ID)
	w.Text(maxUser, &a.User, &a.Group)
	w.Fields(&a.Groups)
}

// Membership answers the AskMember with the same ID.
type Membership struct {
	ID        uint64
	Available bool   // false: the user database is unavailable
	Member    bool   // the group is the user's primary group or one of the supplementary groups
	UID       uint32 // NoID when no user has the name
	GID       uint32
	Groups    []uint32 // supplementary
}

func (m *Membership) Walk(w *ipc.Walker) {
	w.Fields(&m.ID, &m.Available, &m.Member, &m.UID, &m.GID)
	ipc.List(w, &m.Groups, MaxGroups, 4, func(gid *uint32) { w.Fields(gid) })
}

// MaxGroups is the number of supplementary groups that a process of the gateway
// may have.
const MaxGroups = 1024

// QuestionID returns the number of the question that this answers.
func (m *Membership) QuestionID() uint64 { return m.ID }
