package privsep

// slots counts the connections that are being handled. The parent accepts only with a
// slot in hand; who finds none waits in the kernel's queue and loses nothing.
type slots struct {
	taken chan struct{}
}

func newSlots(n int) *slots { return &slots{taken: make(chan struct{}, n)} }

// take waits for a slot. It reports false when quit closes first.
func (s *slots) take(quit <-chan struct{}) bool {
	select {
	case <-quit:
		return false
	default:
	}
	select {
	case s.taken <- struct{}{}:
		return true
	case <-quit:
		return false
	}
}

// free gives n slots back. More than were taken would be a fault of the accounting.
func (s *slots) free(n int) {
	for range n {
		select {
		case <-s.taken:
		default:
			panic("privsep: a slot was freed that nobody had")
		}
	}
}
