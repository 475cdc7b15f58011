package decide

// Results of a request, as status.lastRequest spells them.
const (
	ResultRunning = "Running"
	ResultDone    = "Done"
	ResultRefused = "Refused"
	ResultFailed  = "Failed"
)
