package cli

import (
	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
)

// silence keeps the libraries' own lines off the terminal, of a connection that a
// port-forward has lost for example: what matters of them is in the errors. Without a
// logger controller-runtime complains after 30 seconds. Their loggers are the whole
// process's, so that it is done only for the verbs of the process itself.
func silence(s *iostreams.IOStreams) {
	if !s.Process {
		return
	}
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
}
