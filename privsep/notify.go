package privsep

// notifyReady tells the service manager that connections are served.
func notifyReady() {}

// notifyStopping tells it that the end has begun.
func notifyStopping() {}
