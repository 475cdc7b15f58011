package instance

import (
	"context"
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// Run is the instance manager. It returns when the server has ended; the error's
// exit code (CodeOf) is the container's.
func Run(ctx context.Context, o Options, streams genericiooptions.IOStreams) error {
	cfg, err := Load(o.ConfigFile)
	if err != nil {
		return &ExitError{Code: ExitConfig, Err: err}
	}
	id, err := IdentityFromEnv(os.Getenv)
	if err != nil {
		return &ExitError{Code: ExitConfig, Err: err}
	}
	_, _, _ = ctx, cfg, id
	return exitf(ExitStart, "the supervisor is not part of this build yet")
}
