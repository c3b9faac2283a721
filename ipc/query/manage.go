package query

import "schedrestd/ipc"

// ManageTokens asks the keeper to list, revoke or create gateway tokens of the user of
// a token. A worker has no part in the decision: whose tokens these are follows from
// the token, which the keeper verifies.
type ManageTokens struct {
	ID      uint64 // chosen by the worker and repeated in the answer
	Signed  []byte // header and payload of the token, as they were sent
	MAC     [macSize]byte
	ActAs   string // the user that the request names; "": the token's own user
	Gateway bool   // it is a gateway token
	Action  ManageAction

	Token string // RevokeOne: id of the token; "": the gateway token itself
	Skip  uint32 // ListTokens: how many tokens the worker has from earlier answers

	Scopes  uint8  // CreateToken: as scope.Set
	Seconds uint32 // CreateToken: for how long it is to be valid
	Label   string // CreateToken
}

// ManageAction is what the keeper does.
type ManageAction uint8

// The actions.
const (
	ListTokens ManageAction = iota
	RevokeOne
	RevokeOwn // all tokens of the user until now
	CreateToken
)

const (
	maxTokenID = 26
	maxLabel   = 64
)

func (m *ManageTokens) Walk(w *ipc.Walker) {
	w.Fields(&m.ID)
	w.Blob(&m.Signed, maxSigned)
	w.Bytes(m.MAC[:])
	w.Text(maxUser, &m.ActAs)
	w.Fields(&m.Gateway)
	ipc.Enum(w, &m.Action, "action", ListTokens, CreateToken)
	w.Text(maxTokenID, &m.Token)
	w.Fields(&m.Skip, &m.Scopes, &m.Seconds)
	w.Text(maxLabel, &m.Label)
}

// ManageResult says what has become of a ManageTokens whose token is genuine.
type ManageResult uint8

// The results.
const (
	Managed         ManageResult = iota
	NoSuchToken                  // the user has none with this id
	NotOfThisToken               // a gateway token can manage only itself
	NotForThisUser               // no tokens are created for a user of the system or the gateway
	NotWhatIsSigned              // the scopes, the time or the label
	RegisterClosed               // the register can't be written, or there is none
	RegisterFull                 // the register has no room
	TooManyTokens                // the register has as many tokens of the user as it may have
	TooSoon                      // the user, or the worker, has done this a moment ago
	RegisterMoved                // the register was replaced: the change has no effect
)

// MaxListed is the number of tokens in one TokensManaged.
const MaxListed = 64

// TokensManaged answers the ManageTokens with the same ID.
type TokensManaged struct {
	ID      uint64
	Verdict Verdict // about the token of the question
	Result  ManageResult
	User    string // whose tokens they are
	Token   []byte // CreateToken: the new token
	Tokens  []ListedToken
	More    bool // there are more tokens
}

// ListedToken is what the register says about a token.
type ListedToken struct {
	ID, ActFor, Scopes, Label string
	Issued, Expires           uint64 // seconds since 1970
	Revoked                   bool
}

const (
	maxScopes       = 128
	listedTokenSize = 8 + 16 + 1
)

func (m *TokensManaged) Walk(w *ipc.Walker) {
	w.Fields(&m.ID)
	ipc.Enum(w, &m.Verdict, "verdict", NoVerdict, NotForUser)
	ipc.Enum(w, &m.Result, "result", Managed, RegisterMoved)
	w.Text(maxUser, &m.User)
	w.Blob(&m.Token, maxGatewayToken)
	ipc.List(w, &m.Tokens, MaxListed, listedTokenSize, func(t *ListedToken) {
		w.Text(maxTokenID, &t.ID)
		w.Text(maxUser, &t.ActFor)
		w.Text(maxScopes, &t.Scopes)
		w.Text(maxLabel, &t.Label)
		w.Fields(&t.Issued, &t.Expires, &t.Revoked)
	})
	w.Fields(&m.More)
}
