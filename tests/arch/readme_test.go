package arch

import (
	"os"
	"strings"
	"testing"
)

// statusBlock is the first recorded status screen of a page, its command included.
func statusBlock(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const command = "\n$ kubectl mssql status demo\n"
	_, after, found := strings.Cut(string(b), command)
	screen, _, closed := strings.Cut(after, "\n```")
	if !found || !closed {
		t.Fatalf("%s shows no status screen", file)
	}
	return screen
}

func TestReadme_ShowsTheScreenThatWasRecorded(t *testing.T) {
	t.Parallel()
	if shown, recorded := statusBlock(t, "../../README.md"), statusBlock(t, "../../docs/walkthrough.md"); shown != recorded {
		t.Errorf("README.md does not show the first status of docs/walkthrough.md; make walkthrough writes both\n%s\n\nrecorded:\n%s", shown, recorded)
	}
}
