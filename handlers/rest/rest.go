// Package rest serves a REST API that package api declares. A Server finds the
// route of a request, authenticates the client with package auth, parses the
// parameters and the body, calls the function that does the work, and renders
// the answer, which always has the same envelope. ServeHTTP (serve.go) lists
// these steps in order.
//
// Package handlers contains the functions that do the work. Such a function gets
// a Call, which is one request (request.go) with its answer (answer.go). A
// function that only reads answers with Send:
//
//	func (h *handler) getDiag(c *rest.Call, _ *api.NoParams) error {
//		stats, err := h.Controller.Stats(c.Context(), c.Credential())
//		if err != nil {
//			return err
//		}
//		return rest.Send(c, http.StatusOK, api.Diag, &api.DiagAnswer{…, Envelope: c.Envelope()})
//	}
//
// A function that changes something reads the body with ReadBody and makes the
// change inside MakeChange, which records the change in the audit log. Bind
// combines the function with the declaration of its endpoint to a Route. A Page
// is a path outside the API, such as /healthz.
//
// This package never reads a body before the client is authenticated, because
// parsing a hostile body may take a long time. It never sends a truncated
// answer that looks complete. It never sends the internal cause of a failure.
// It refuses tokens in URLs. It never logs a token, in whatever part of the
// request the token was sent (tokens.go).
package rest
