package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-mssql/kubectl-mssql/tests/cluster"
)

// imageCommand writes an image out of static programs, for what load-image takes.
func imageCommand() *cobra.Command {
	var i cluster.Image
	var files, links []string
	cmd := &cobra.Command{
		Use:   "image NAME:TAG OUT.tar",
		Short: "Write a docker-archive of one layer",
		Example: `  cluster image kmssql.local/busybox:1 busybox.tar --file /bin/busybox=/bin/busybox \
    --link /bin/sh=busybox --entrypoint /bin/sh`,
		Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			i.Name = args[0]
			for _, f := range files {
				source, path, ok := strings.Cut(f, "=")
				if !ok {
					return fmt.Errorf("--file %s: want SOURCE=PATH", f)
				}
				i.Files = append(i.Files, cluster.ImageFile{Path: path, Source: source})
			}
			for _, l := range links {
				path, target, ok := strings.Cut(l, "=")
				if !ok {
					return fmt.Errorf("--link %s: want PATH=TARGET", l)
				}
				i.Files = append(i.Files, cluster.ImageFile{Path: path, Link: target})
			}
			i.Files = append(i.Files, cluster.ImageFile{Path: "/tmp/"})
			return i.WriteFile(args[1])
		},
	}
	cmd.Flags().StringArrayVar(&files, "file", nil, "file to copy, SOURCE=PATH; may be repeated")
	cmd.Flags().StringArrayVar(&links, "link", nil, "symbolic link, PATH=TARGET; may be repeated")
	cmd.Flags().StringArrayVar(&i.Entrypoint, "entrypoint", nil, "a word of the entry point; may be repeated")
	cmd.Flags().StringVar(&i.User, "user", "", "user that the container runs as")
	return cmd
}
