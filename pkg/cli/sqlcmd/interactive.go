package sqlcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/peterh/liner"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
)

// lineReader edits lines: liner on a terminal.
type lineReader interface {
	Prompt(string) (string, error)
	AppendHistory(string)
}

const interactiveHelp = `GO on its own line, or a line that ends in ;   send what was typed
GO N                                           send it N times
:r FILE                                        read a file into the batch
:list                                          show the batch      :reset  forget it
:help                                          this                :q, exit, Ctrl-D  end
Ctrl-C                                         drop the line, or cancel the query that runs
Up, Ctrl-R                                     earlier lines
`

// interact reads lines with editing and history until exit or the end of input.
func (o *Options) interact(ctx context.Context, conn mssql.Streamer, pod string) error {
	edit := liner.NewLiner()
	defer func() { _ = edit.Close() }()
	edit.SetCtrlCAborts(true)
	edit.SetMultiLineMode(true)
	history := o.historyFile()
	if f, err := os.Open(history); err == nil {
		_, _ = edit.ReadHistory(f) // a history that cannot be read is an empty one
		_ = f.Close()
	}
	fmt.Fprintf(o.Streams.ErrOut, "Connected to %s. End a statement with ; or GO; :help tells more.\n", pod)
	err := o.loop(ctx, edit, conn, pod)
	if history != "" {
		o.saveHistory(edit, history)
	}
	return err
}

// historyFile is under the user's state directory; "" when there is none, and when
// MSSQL_HISTORY says so.
func (o *Options) historyFile() string {
	if v := o.Getenv("MSSQL_HISTORY"); v != "" {
		if v == "off" {
			return ""
		}
		return v
	}
	dir := o.Getenv("XDG_STATE_HOME")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		dir = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(dir, "kubectl-mssql", "sql_history")
}

// saveHistory writes for the user alone: statements may hold what is nobody's business.
func (o *Options) saveHistory(edit *liner.State, file string) {
	err := os.MkdirAll(filepath.Dir(file), 0o700)
	if err == nil {
		var f *os.File
		if f, err = os.OpenFile(file, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600); err == nil {
			_, err = edit.WriteHistory(f)
			err = errors.Join(err, f.Close())
		}
	}
	if err != nil {
		fmt.Fprintf(o.Streams.ErrOut, "%s the history was not kept: %v\n", o.Streams.Mark(iostreams.MarkWarn), err)
	}
}

// secret tells whether a line must not be kept.
func secret(line string) bool {
	return strings.Contains(strings.ToUpper(line), "PASSWORD")
}

// loop is the conversation. Ctrl-C must not end it, so the context of the process,
// which Ctrl-C cancels, is left behind; each query has its own.
func (o *Options) loop(ctx context.Context, edit lineReader, conn mssql.Streamer, pod string) error {
	ctx = context.WithoutCancel(ctx)
	var batch []string
	for {
		prompt := pod + "> "
		if len(batch) > 0 {
			prompt = fmt.Sprintf("%*d> ", len(pod), len(batch)+1)
		}
		line, err := edit.Prompt(prompt)
		switch {
		case errors.Is(err, liner.ErrPromptAborted):
			batch = nil
			continue
		case errors.Is(err, io.EOF):
			fmt.Fprintln(o.Streams.ErrOut)
			return nil
		case err != nil:
			return fmt.Errorf("read a line: %w", err)
		}
		word := strings.ToLower(strings.TrimSpace(line))
		if word != "" && !secret(line) {
			edit.AppendHistory(line)
		}
		inside := stateAfter(batch).kind != code
		if !inside {
			done, end := o.command(word, strings.TrimSpace(line), &batch)
			if end {
				return nil
			}
			if done {
				continue
			}
		}
		count, isGo := goLine(line)
		isGo = isGo && !inside
		if !isGo {
			batch = append(batch, line)
			count = 1
			if !strings.HasSuffix(word, ";") || stateAfter(batch).kind != code {
				continue
			}
		}
		text := strings.Join(batch, "\n")
		batch = nil
		if strings.TrimSpace(text) == "" {
			continue
		}
		for range count {
			if err := o.ask(ctx, conn, text); err != nil {
				break // told already
			}
		}
	}
}

func stateAfter(batch []string) lexState {
	s := inCode
	for _, l := range batch {
		s = s.after(l + "\n")
	}
	return s
}

// command carries out the words that are for us and not for the server.
func (o *Options) command(word, line string, batch *[]string) (done, end bool) {
	switch {
	case word == ":q" || word == ":quit" || word == ":exit":
		return true, true
	case len(*batch) == 0 && (word == "exit" || word == "quit" || word == "exit;" || word == "quit;"):
		return true, true
	case word == ":help" || word == ":h" || word == ":?":
		fmt.Fprint(o.Streams.ErrOut, interactiveHelp)
	case word == ":reset":
		*batch = nil
	case word == ":list":
		fmt.Fprintln(o.Streams.ErrOut, strings.Join(*batch, "\n"))
	case strings.HasPrefix(word, ":r "):
		b, err := os.ReadFile(strings.TrimSpace(line[3:]))
		if err != nil {
			o.complain(err)
			return true, false
		}
		*batch = append(*batch, strings.Split(strings.TrimRight(string(b), "\r\n"), "\n")...)
		fmt.Fprintf(o.Streams.ErrOut, "%d lines in the batch; GO sends it\n", len(*batch))
	case strings.HasPrefix(word, ":"):
		o.complain(fmt.Errorf("unknown command %s; :help lists them", word))
	default:
		return false, false
	}
	return true, false
}

// ask sends one batch; Ctrl-C cancels it and nothing else.
func (o *Options) ask(ctx context.Context, conn mssql.Streamer, text string) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	w := newWriter(format(o.Output), o.Streams)
	err := o.send(ctx, conn, text, w)
	err = errors.Join(err, w.Close())
	switch {
	case err == nil:
	case exit.Of(err) == exit.Interrupted:
		fmt.Fprintln(o.Streams.ErrOut, "cancelled")
	case !reported(err):
		o.complain(err)
	}
	return err
}

func (o *Options) complain(err error) {
	fmt.Fprintf(o.Streams.ErrOut, "%s %v\n", iostreams.Paint(o.Streams.ColorErr(), iostreams.StyleRed, "error:"), err)
}
