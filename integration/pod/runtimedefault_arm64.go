package pod

var blockedHere []uintptr
