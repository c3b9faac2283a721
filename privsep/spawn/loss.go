package spawn

// WatchLoss logs the loss of PID namespaces, and reports each to lost, until over is
// closed: the workers and services in one have exited with it, and others start in
// the next one. After the loss of the last one, lost gets why there is none.
func (s *Spawner) WatchLoss(over <-chan struct{}, lost func(error)) {
	for s.Lost() != nil {
		select {
		case <-s.Lost():
		case <-over:
			return
		}
		if !s.IsLost() { // the parent ended it
			return
		}
		const hint = "find out what kills processes called schedrestd-init"
		_, err := s.Next()
		if err != nil {
			s.Log.Error("namespace init exited", "error", err, "hint", "the gateway ends: only a new start can make namespaces; "+hint)
			lost(err)
			return
		}
		s = s.InUse()
		s.Log.Error("namespace init exited", "user_namespaces", s.nest != nil,
			"hint", "workers and services are started in the next namespace; "+hint)
		lost(nil)
	}
}
