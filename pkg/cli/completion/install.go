package completion

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
)

// Install puts the link to plugin into dir and says what it did: created, replaced or
// unchanged. A file of that name that is no link to the plugin is left alone unless
// force is set. Windows, where links need rights, gets a hard link or a copy.
func Install(dir, plugin string, force bool) (path, state string, err error) {
	info, err := os.Stat(dir)
	if err != nil {
		return "", "", exit.With(exit.Usage, "name an existing directory with --dir", fmt.Errorf("install the link: %w", err))
	}
	if !info.IsDir() {
		return "", "", exit.Errorf(exit.Usage, "name a directory with --dir", "%s is no directory", dir)
	}
	path = filepath.Join(dir, LinkName+exeSuffix())
	target := plugin
	if filepath.Dir(plugin) == filepath.Clean(dir) {
		target = filepath.Base(plugin) // survives a move of the directory
	}
	state = "created"
	if _, err := os.Lstat(path); err == nil {
		switch {
		case same(path, plugin):
			return path, "unchanged", nil
		case !ours(path) && !force:
			return "", "", exit.Errorf(exit.Refused, "look at it; --force replaces it", "%s is there already and is not the plugin's", path)
		}
		state = "replaced"
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", "", fmt.Errorf("install the link: %w", err)
	}
	if err := place(path, target, plugin); err != nil {
		hint := ""
		if errors.Is(err, fs.ErrPermission) {
			hint = "run it with the rights of the directory's owner, or choose another directory of PATH with --dir"
		}
		return "", "", exit.With(exit.Unexpected, hint, fmt.Errorf("install the link: %w", err))
	}
	return path, state, nil
}

// same tells whether the path is the plugin: through links, or as a hard link.
func same(path, plugin string) bool {
	a, errA := os.Stat(path)
	b, errB := os.Stat(plugin)
	return errA == nil && errB == nil && os.SameFile(a, b)
}

// ours tells whether the path may be replaced: a link that leads to some
// kubectl-mssql or nowhere, the shim, or on Windows an older copy.
func ours(path string) bool {
	if to, err := os.Readlink(path); err == nil {
		return filepath.Base(to) == "kubectl-mssql"+exeSuffix()
	}
	if runtime.GOOS == "windows" {
		return true
	}
	b, err := os.ReadFile(path)
	return err == nil && string(b) == Shim
}

// place makes the link under a name of its own and renames it, so that the old one
// works until the new one does.
func place(path, target, plugin string) error {
	temp := fmt.Sprintf("%s.%d", path, os.Getpid())
	defer func() { _ = os.Remove(temp) }() // gone already when the rename has worked
	if runtime.GOOS != "windows" {
		if err := os.Symlink(target, temp); err != nil {
			return err
		}
		return os.Rename(temp, path)
	}
	if err := os.Link(plugin, temp); err != nil {
		if err := copyFile(plugin, temp); err != nil {
			return err
		}
	}
	return os.Rename(temp, path)
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		_ = out.Close() // the copy's error is the one to report
		return err
	}
	return out.Close()
}
