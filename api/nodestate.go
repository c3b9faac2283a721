package api

import (
	"schedrestd/api/schema"
	"schedrestd/model"
)

// nodeBase is the mask of the base state in a node's state. The other bits are
// flags.
const nodeBase model.NodeState = 0xf

// nodeStates are the words for a node's state: one word for the base state, and
// one for each flag that is set. INVALID means "no state" and is shown alone.
var nodeStates = schema.Words("node_states",
	schema.Part("INVALID", ^model.NodeState(0), model.NodeStateNone, schema.Alone),
	schema.Part("UNKNOWN", nodeBase, model.NodeUnknown),
	schema.Part("DOWN", nodeBase, model.NodeDown),
	schema.Part("IDLE", nodeBase, model.NodeIdle),
	schema.Part("ALLOCATED", nodeBase, model.NodeAllocated),
	schema.Part("ERROR", nodeBase, model.NodeError),
	schema.Part("MIXED", nodeBase, model.NodeMixed),
	schema.Part("FUTURE", nodeBase, model.NodeFuture),
	schema.Bit("EXTERNAL", model.NodeExternal, schema.Since(V44)),
	schema.Bit("RESERVED", model.NodeReserved),
	schema.Bit("UNDRAIN", model.NodeUndrain),
	schema.Bit("CLOUD", model.NodeCloud),
	schema.Bit("RESUME", model.NodeResume),
	schema.Bit("DRAIN", model.NodeDrain),
	schema.Bit("COMPLETING", model.NodeCompleting),
	schema.Bit("NOT_RESPONDING", model.NodeNotResponding),
	schema.Bit("POWERED_DOWN", model.NodePoweredDown),
	schema.Bit("FAIL", model.NodeFail),
	schema.Bit("POWERING_UP", model.NodePoweringUp),
	schema.Bit("MAINTENANCE", model.NodeMaint),
	schema.Bit("REBOOT_REQUESTED", model.NodeRebootRequested),
	schema.Bit("REBOOT_CANCELED", model.NodeRebootCanceled),
	schema.Bit("POWERING_DOWN", model.NodePoweringDown),
	schema.Bit("DYNAMIC_FUTURE", model.NodeDynamicFuture),
	schema.Bit("REBOOT_ISSUED", model.NodeRebootIssued),
	schema.Bit("PLANNED", model.NodePlanned),
	schema.Bit("INVALID_REG", model.NodeInvalidReg),
	schema.Bit("POWER_DOWN", model.NodePowerDown),
	schema.Bit("POWER_UP", model.NodePowerUp),
	schema.Bit("POWER_DRAIN", model.NodePowerDrain),
	schema.Bit("POWER_DOWN_ASAP", model.NodePowerDown|model.NodePowerDrain, schema.Since(V45)),
	schema.Bit("POWER_DOWN_FORCE", model.NodePowerDown|model.NodePoweredDown, schema.Since(V45)),
	schema.Bit("DYNAMIC_NORM", model.NodeDynamicNorm),
	schema.Bit("BLOCKED", model.NodeBlocked, schema.Since(V44)),
)

// certFlags are the words about a node's TLS certificate.
var certFlags = schema.Words("", schema.Bit("TOKEN_SET", uint16(1)))

// shownState returns the state to show for a node. If only some processors of a
// node are allocated, its state is MIXED, but controllers send ALLOCATED.
// shownState corrects this unless n.Unmixed is set.
func shownState(n *NodeRow) model.NodeState {
	if !n.Unmixed && n.State.Base() == model.NodeAllocated && n.AllocCPUs > 0 && n.AllocCPUs < n.EffectiveCPUs {
		return n.State&^nodeBase | model.NodeMixed
	}
	return n.State
}
