package semaphore

import "context"

type contextKey struct{}

// WithKey returns a copy of ctx for work that is done for the user or the source
// with this key. Functions that wait for a place on the way can then count the
// place for them, although they know neither.
func WithKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, contextKey{}, key)
}

// KeyFrom returns the key that WithKey has put into ctx, or "" for none.
func KeyFrom(ctx context.Context) string {
	key, _ := ctx.Value(contextKey{}).(string)
	return key
}
