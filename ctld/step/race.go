//go:build race

package step

// The race detector has every process wait for a second at its exit; a test starts hundreds.
func init() { stageEnv = append(stageEnv, "GORACE=atexit_sleep_ms=0") }
