package worker

import (
	"net/http"

	"schedrestd/handlers"
	"schedrestd/internal/errs"
	"schedrestd/ipc/work"
)

// An answerError function answers a request that is not admitted, or input that
// is not a valid request. The answer looks like those of the handlers, and is
// recorded in the access log.
type answerError func(http.ResponseWriter, *http.Request, error)

func newAnswerError(setup *work.Setup) answerError {
	return handlers.New(handlerConfig(*setup)).ServeError
}

// errOverloaded is the answer to a request that is well-formed, but has waited
// too long because too many requests were in progress.
var errOverloaded = errs.New(errs.Unavailable, "server busy: concurrency limit reached")
