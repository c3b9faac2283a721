package api

import (
	"net/http"

	"schedrestd/api/scope"
)

type NamedReservationParams struct{ Name string }

var namedReservationParams = nameParams("reservation_name", "reservation", "Name of the reservation",
	func(p *NamedReservationParams) *string { return &p.Name })

var DeleteReservation = declare(scope.ClusterAdmin, namedReservationParams, Endpoint{
	Method: http.MethodDelete, Path: "reservation/{reservation_name}", ID: "delete_reservation",
	Doc: "Delete a reservation", Answer: Empty,
	Description: "Deletes the reservation with this name. Requires operator rights, unless the reservation allows its users to delete it. Returns 409 while jobs run in the reservation and 404 if the name is unknown.",
	AnswerDoc:   "The reservation was deleted",
	SlurmSince:  V43, // in the documents of 24.11; Slurm 25.05 added the operation to v0.0.40 to v0.0.42
})
