package decide

import "github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"

// RunOf is the run that a grant to this replica would name; zero when its manager did
// not answer. The first grant of a group names its holder in the same way.
func RunOf(r *ag.Replica) ag.Run { return runOf(r) }
