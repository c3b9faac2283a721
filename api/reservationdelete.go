package api

import (
	"net/http"

	"schedrestd/api/schema"
)

// NamedReservationParams name a reservation.
type NamedReservationParams struct{ Name string }

var namedReservationParams = schema.Object("",
	schema.F("reservation_name", someName("reservation"), func(p *NamedReservationParams) *string { return &p.Name }, "Name of the reservation", schema.Required(0)),
)

// DeleteReservation deletes a reservation.
var DeleteReservation = declare(namedReservationParams, Endpoint{
	Method: http.MethodDelete, Path: "reservation/{reservation_name}", ID: "delete_reservation",
	Doc: "Delete a reservation", Answer: Empty, Since: V43,
	About:   "Deletes the reservation of that name. One whose jobs run can't be deleted (409). Only operators may, unless the reservation says otherwise. A name that no reservation has is answered with 404.",
	Returns: "Nothing but the envelope: the reservation is deleted",
})
