package logs

import "testing"

func TestParse_ReadsOurJSONAndLeavesTextAlone(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ raw, level, text string }{
		"our JSON":                           {`2026-08-22T08:15:17.5Z {"level":"error","ts":"x","msg":"renew failed","replica":"demo-0","attempt":2}` + "\n", "error", "renew failed attempt=2 replica=demo-0"},
		"SQL Server text":                    {"2026-08-22T08:15:17.5Z 2026-08-22 08:15:17.50 spid9s Recovery is complete.\n", "", "2026-08-22 08:15:17.50 spid9s Recovery is complete."},
		"JSON of others":                     {`2026-08-22T08:15:17.5Z {"a":1}`, "", `{"a":1}`},
		"broken JSON":                        {`2026-08-22T08:15:17.5Z {"msg":`, "", `{"msg":`},
		"SQL Server's error is text as well": {"2026-08-22T08:15:17.5Z 2026-08-22 08:15:17.50 spid9s Error: 9002, Severity: 17, State: 9.", "", "2026-08-22 08:15:17.50 spid9s Error: 9002, Severity: 17, State: 9."},
		"no time stamp":                      {"unable to retrieve container logs", "", "unable to retrieve container logs"},
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

func TestClassifier_AnErrorIsItsNumberAndItsText(t *testing.T) {
	t.Parallel()
	var c classifier
	for i, tt := range []struct{ text, want string }{
		{"2026-08-22 08:15:17.50 spid9s Error: 9002, Severity: 17, State: 9.", "error"},
		{"2026-08-22 08:15:17.50 spid9s The transaction log for database 'crm' is full.", "error"},
		{"2026-08-22 08:15:17.51 spid9s Recovery is complete.", ""},
		{"2026-08-22 08:15:17.52 spid9s Error: 1480, Severity: 10, State: 0.", ""},
		{"2026-08-22 08:15:17.52 spid9s The database role changes.", ""},
		{"2026-08-22 08:15:17.53 spid7s Error: 9002, Severity: 17, State: 9.", "error"},
		{"2026-08-22 08:15:17.53 spid9s A line of another session.", ""},
	} {
		if got := c.classify(Line{Text: tt.text, Server: true}, errorPattern()); got.Level != tt.want {
			t.Errorf("line %d %q: level %q, want %q", i, tt.text, got.Level, tt.want)
		}
	}
}

func TestConcerns_FindsTheGroupAndItsReplicasOnly(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]bool{
		`{"msg":"x","ag":"demo"}`:                                                     true,
		`2026-08-22T08:15:17.5Z {"msg":"x","replica":"demo-1"}`:                       true,
		`{"msg":"x","ag":"prod/demo"}`:                                                true,
		`{"msg":"x","SQLServerAvailabilityGroup":{"name":"demo","namespace":"prod"}}`: true,
		`{"msg":"x","ag":"demonstration"}`:                                            false,
		`{"msg":"x","ag":"other"}`:                                                    false,
		`{"msg":"x","namespace":"test","name":"demo"}`:                                false,
		`{"msg":"demo","ag":"other"}`:                                                 false,
		`{"msg":"x","replica":"demo-7"}`:                                              false,
		`no JSON about "demo"`:                                                        false,
	} {
		if got := Concerns(raw, "prod", "demo", "demo-0", "demo-1"); got != want {
			t.Errorf("%s: %v, want %v", raw, got, want)
		}
	}
}

func FuzzParse_NeverPanics(f *testing.F) {
	f.Add(`2026-08-22T08:15:17.5Z {"msg":"x","a":[1,{"b":null}]}`)
	f.Fuzz(func(_ *testing.T, raw string) { Parse("x", raw) })
}
