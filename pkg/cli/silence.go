package cli

import (
	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
)

// silence keeps controller-runtime off the terminal: without a logger it complains after 30
// seconds, and the first one that is set stays, so that it is not set for the operator. It is
// the whole process's, and is left alone where a verb runs within another one. klog, which
// can be set again, is main's.
func silence(s *iostreams.IOStreams) {
	if !s.Process {
		return
	}
	log.SetLogger(logr.Discard())
}
