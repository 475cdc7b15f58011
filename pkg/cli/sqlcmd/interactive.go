package sqlcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
)

type duplex struct {
	io.Reader
	io.Writer
}

// interact reads lines with editing and history until exit or the end of input; GO,
// or a line that ends in a semicolon, sends what was typed.
func (o *Options) interact(ctx context.Context, conn mssql.Conn, pod string) error {
	fd := int(os.Stdin.Fd())
	old, err := term.MakeRaw(fd)
	if err != nil {
		return fmt.Errorf("set up the terminal: %w", err)
	}
	defer func() { _ = term.Restore(fd, old) }() // nothing can be done about a terminal that is gone
	t := term.NewTerminal(duplex{o.Streams.In, o.Streams.Out}, pod+"> ")
	if o.Streams.Width > 0 {
		_ = t.SetSize(o.Streams.Width, 24) // the width alone matters for editing
	}
	fmt.Fprintf(t, "Connected to %s. End a statement with ; or GO; exit ends.\n", pod)
	inTerminal := *o
	streams := *o.Streams
	streams.Out = t
	inTerminal.Streams = &streams
	var b strings.Builder
	for {
		line, err := t.ReadLine()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read a line: %w", err)
		}
		trimmed := strings.TrimSpace(line)
		if b.Len() == 0 && (strings.EqualFold(trimmed, "exit") || strings.EqualFold(trimmed, "quit")) {
			return nil
		}
		_, isGo := goLine(line)
		if !isGo {
			b.WriteString(line + "\n")
		}
		if isGo || strings.HasSuffix(trimmed, ";") {
			text := b.String()
			b.Reset()
			t.SetPrompt(pod + "> ")
			if strings.TrimSpace(text) == "" {
				continue
			}
			if err := inTerminal.exec(ctx, conn, text); err != nil {
				fmt.Fprintf(t, "%s %v\n", iostreams.Paint(o.Streams.ColorErr(), iostreams.StyleRed, "error:"), err)
			}
			continue
		}
		t.SetPrompt("    -> ")
	}
}
