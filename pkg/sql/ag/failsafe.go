package ag

// Answered tells whether this run of the manager ever answered a failsafe question with
// yes: LastFailsafeAgo is negative otherwise. A status without the field says zero; a
// manager that started just now has had no time to answer.
func (m Manager) Answered() bool { return m.LastFailsafeAgo >= 0 && m.LastFailsafeAgo < m.StartedAgo }
