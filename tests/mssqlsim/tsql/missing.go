package tsql

// Statements whose effect the engine does not model are refused by name.

func errUnsupported(what string) error {
	return errNum(40515, 16, 1, "%s is not supported in this version of the simulated server.", what)
}

func (ex *exec) restore(s *restoreStmt) error {
	return errUnsupported("RESTORE " + s.kind)
}

func (ex *exec) credential(s *credentialStmt) error {
	return errUnsupported(s.verb + " CREDENTIAL")
}
