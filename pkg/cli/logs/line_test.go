package logs

import "testing"

func TestParse_ReadsOurJSONAndLeavesTextAlone(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ raw, level, text string }{
		"our JSON":        {`2026-08-22T08:15:17.5Z {"level":"error","ts":"x","msg":"renew failed","replica":"demo-0","attempt":2}` + "\n", "error", "renew failed attempt=2 replica=demo-0"},
		"SQL Server text": {"2026-08-22T08:15:17.5Z 2026-08-22 08:15:17.50 spid9s Recovery is complete.\n", "", "2026-08-22 08:15:17.50 spid9s Recovery is complete."},
		"JSON of others":  {`2026-08-22T08:15:17.5Z {"a":1}`, "", `{"a":1}`},
		"broken JSON":     {`2026-08-22T08:15:17.5Z {"msg":`, "", `{"msg":`},
		"no time stamp":   {"unable to retrieve container logs", "", "unable to retrieve container logs"},
	} {
		l := Parse("demo-0", tc.raw)
		if l.Level != tc.level || l.Text != tc.text {
			t.Errorf("%s: level %q text %q", name, l.Level, l.Text)
		}
	}
}

func TestKeep_ErrorsPassEveryFilter(t *testing.T) {
	t.Parallel()
	if !Keep(Line{Level: "error"}, "error") || Keep(Line{Level: "info"}, "error") || Keep(Line{}, "error") || Keep(Line{Level: "debug"}, "info") || !Keep(Line{}, "info") {
		t.Error("the filter by level is wrong")
	}
}

func TestConcerns_FindsTheGroupAndItsReplicasOnly(t *testing.T) {
	t.Parallel()
	if !Concerns(`{"ag":"demo"}`, "prod", "demo") || !Concerns(`{"replica":"demo-1"}`, "prod", "demo") || !Concerns(`{"ag":"prod/demo"}`, "prod", "demo") {
		t.Error("a line about the group was dropped")
	}
	if Concerns(`{"ag":"demonstration"}`, "prod", "demo") || Concerns(`{"ag":"other"}`, "prod", "demo") {
		t.Error("a line about another group was kept")
	}
}

func FuzzParse_NeverPanics(f *testing.F) {
	f.Add(`2026-08-22T08:15:17.5Z {"msg":"x","a":[1,{"b":null}]}`)
	f.Fuzz(func(_ *testing.T, raw string) { Parse("x", raw) })
}
