package api

import (
	"strconv"

	"schedrestd/api/schema"
	"schedrestd/model"
)

// exitCode describes how a process ended. It is decoded from a wait(2) status.
type exitCode struct {
	status exitStatus
	code   model.Opt[uint32]
	signal model.Opt[uint16]
}

type exitStatus uint8

const (
	exitInvalid exitStatus = iota
	exitPending
	exitSuccess
	exitError
	exitSignaled
	exitCoreDumped
)

var exitStatuses = schema.Words("process_exit_code_status",
	schema.Part("INVALID", ^exitStatus(0), exitInvalid),
	schema.Part("PENDING", ^exitStatus(0), exitPending),
	schema.Part("SUCCESS", ^exitStatus(0), exitSuccess),
	schema.Part("ERROR", ^exitStatus(0), exitError),
	schema.Part("SIGNALED", ^exitStatus(0), exitSignaled),
	schema.Part("CORE_DUMPED", ^exitStatus(0), exitCoreDumped),
)

var exitCodeType = schema.Object("process_exit_code_verbose", func() schema.Fields[exitCode] {
	return schema.Fields[exitCode]{
		schema.F("status", exitStatuses.Type, func(c *exitCode) *exitStatus { return &c.status }, "How the process ended"),
		schema.F("return_code", number, func(c *exitCode) *model.Opt[uint32] { return &c.code }, "Exit status, if the process exited by itself", schema.Bare),
		schema.Group("signal", "Signal that ended the process, if any", schema.Fields[exitCode]{
			schema.F("id", number, func(c *exitCode) *model.Opt[uint16] { return &c.signal }, "Number of the signal", schema.Bare),
			schema.Show("name", schema.String, func(c *exitCode) string { return signalName(c.signal) }, "Name of the signal, or its number if it has none"),
		}),
	}
})

// decodeExit decodes a wait(2) status. The exit code is in bits 8 to 15, and
// the signal is in bits 0 to 6.
func decodeExit(n uint32) exitCode {
	signal := n & 0x7f
	switch {
	case n == model.NoVal32:
		return exitCode{status: exitPending}
	case signal == 0 && n>>8&0xff == 0:
		return exitCode{status: exitSuccess, code: model.Some[uint32](0)}
	case signal == 0:
		return exitCode{status: exitError, code: model.Some(n >> 8 & 0xff)}
	case signal != 0x7f:
		return exitCode{status: exitSignaled, code: model.Opt[uint32]{}, signal: model.Some(uint16(signal))}
	}
	return exitCode{status: exitInvalid, code: model.Some(n)}
}

// ReturnCode returns the exit code in a wait(2) status, as answers show it.
func ReturnCode(status uint32) model.Opt[uint32] { return decodeExit(status).code }

// signalNames maps signals to their names. A signal that is not in the map is
// shown as a number.
var signalNames = map[uint16]string{
	1: "HUP", 2: "INT", 3: "QUIT", 6: "ABRT", 9: "KILL", 10: "USR1", 12: "USR2", 14: "ALRM",
	15: "TERM", 18: "CONT", 19: "STOP", 20: "TSTP", 21: "TTIN", 22: "TTOU", 23: "URG",
}

func signalName(o model.Opt[uint16]) string {
	if !o.Set {
		return ""
	}
	if name := signalNames[o.Number]; name != "" {
		return name
	}
	return strconv.FormatUint(uint64(o.Number), 10)
}
