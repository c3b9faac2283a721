//go:build race

package step

// The race detector makes every process wait for a second when it exits. That
// would be too slow, because a test starts hundreds of processes.
func init() { stageEnv = append(stageEnv, "GORACE=atexit_sleep_ms=0") }
