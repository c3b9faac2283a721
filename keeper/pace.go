package keeper

// questions is how many a worker may ask in a second, and at once after a rest, and the others are what each of them counts for. No
// honest worker comes near: to make the rest of a handshake, or to read the request of a token, takes it longer. A captured one can't
// have the processor for itself. What comes meanwhile waits in the worker's own channel.
const (
	questions = 25_000
	signing   = questions / 5000
	verifying = 1
)
