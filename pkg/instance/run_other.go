//go:build !linux

package instance

import (
	"context"
	"errors"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// Run is for Linux containers only.
func Run(context.Context, Options, genericiooptions.IOStreams) error {
	return errors.New("instance run works in a Linux container only: SQL Server containers are nothing else")
}
