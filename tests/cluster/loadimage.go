package cluster

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// LoadImage implements Cluster. The archive is kept, so that a node that comes
// later or has been frozen gets it too; a newer archive of the same tag replaces it.
func (l *Local) LoadImage(ctx context.Context, archive string) error {
	return l.locked(ctx, func(s *session) error {
		tags, sum, err := inspectArchive(archive)
		if err != nil {
			return err
		}
		kept := filepath.Join(s.layout.images(), regexp.MustCompile(`[^A-Za-z0-9._-]+`).ReplaceAllString(tags[0], "_")+".tar")
		if err := copyFile(archive, kept); err != nil {
			return fmt.Errorf("keep the image %s: %w", tags[0], err)
		}
		if err := writeFileAtomic(kept+".sum", []byte(sum), 0o644); err != nil {
			return err
		}
		for _, n := range s.state.Nodes {
			name := nodeName(n.Index)
			holder, ok := s.state.process(holderName(name))
			if !ok || !holder.alive() || n.Frozen {
				l.say("%s gets %s when it runs again", name, tags[0])
				continue
			}
			if err := s.importImages(ctx, name, holder.PID); err != nil {
				return err
			}
		}
		l.say("loaded %s", strings.Join(tags, ", "))
		return nil
	})
}

// importImages gives one node every archive of the cluster that it lacks, which
// a mark beside its store tells.
func (s *session) importImages(ctx context.Context, name string, holder int) error {
	archives, err := filepath.Glob(filepath.Join(s.layout.images(), "*.tar"))
	if err != nil {
		return fmt.Errorf("list the images: %w", err)
	}
	snapshotter, err := snapshotterFor(s.layout.root)
	if err != nil {
		return err
	}
	for _, a := range archives {
		sum, err := os.ReadFile(a + ".sum")
		if err != nil {
			return fmt.Errorf("read the checksum of an image: %w", err)
		}
		mark := s.layout.node(name, "images", filepath.Base(a))
		if has, err := os.ReadFile(mark); err == nil && string(has) == string(sum) {
			continue
		}
		argv := append(enterNamespaces(holder), "ctr", "--namespace", "k8s.io", "images", "import", "--snapshotter", snapshotter, a)
		if _, err := run(ctx, "", argv...); err != nil {
			return fmt.Errorf("load %s into %s: %w", filepath.Base(a), name, err)
		}
		if err := writeFileAtomic(mark, sum, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// inspectArchive returns the tags and the checksum of a docker-archive.
func inspectArchive(file string) (tags []string, sum string, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, "", fmt.Errorf("read the image: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	whole := io.TeeReader(f, h)
	t := tar.NewReader(whole)
	for {
		header, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, "", fmt.Errorf("read the image %s: %w", file, err)
		}
		if header.Name != "manifest.json" {
			continue
		}
		var manifest []struct{ RepoTags []string }
		if err := json.NewDecoder(t).Decode(&manifest); err != nil {
			return nil, "", fmt.Errorf("read the manifest of %s: %w", file, err)
		}
		for _, m := range manifest {
			tags = append(tags, m.RepoTags...)
		}
	}
	// What follows the archive's end belongs to the checksum too.
	if _, err := io.Copy(io.Discard, whole); err != nil {
		return nil, "", fmt.Errorf("read the image %s: %w", file, err)
	}
	if len(tags) == 0 {
		return nil, "", fmt.Errorf("%s is no docker-archive with a tagged image: write it with \"docker save NAME:TAG\" or Image.WriteFile", file)
	}
	return tags, hex.EncodeToString(h.Sum(nil)), nil
}

func copyFile(from, to string) error {
	if from == to {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	out, err := os.Create(to + ".new")
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return os.Rename(to+".new", to)
}
