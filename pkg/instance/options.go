package instance

import (
	"path/filepath"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance/managerapi"
)

// Options are the paths and addresses of one container; the defaults are those of the pod that the controller makes.
type Options struct {
	ConfigFile           string
	DataDir              string
	Program              string
	SAPasswordFile       string
	OperatorPasswordFile string
	TLSDir               string
	ProbeAddress         string
	ManagerAddress       string
	Kubeconfig           string
}

// DefaultOptions are the paths in the pod.
func DefaultOptions() Options {
	return Options{
		ConfigFile:           "/etc/kubectl-mssql/config/" + ConfigKey,
		DataDir:              "/var/opt/mssql",
		Program:              "/opt/mssql/bin/sqlservr",
		SAPasswordFile:       "/etc/kubectl-mssql/sa/password",
		OperatorPasswordFile: "/etc/kubectl-mssql/operator/password",
		TLSDir:               "/etc/kubectl-mssql/tls",
		ProbeAddress:         ":8080",
		ManagerAddress:       ":8443",
	}
}

func (o Options) stateDir() string { return filepath.Join(o.DataDir, ".kubectl-mssql") }

func (o Options) credentials() managerapi.Files {
	return managerapi.Files{
		Cert: filepath.Join(o.TLSDir, "manager.crt"),
		Key:  filepath.Join(o.TLSDir, "manager.key"),
		CA:   filepath.Join(o.TLSDir, "ca.crt"),
	}
}
