package report

import (
	"encoding/base64"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestText_TakesOutWhatLooksLikeASecret(t *testing.T) {
	t.Parallel()
	const planted = "Hunter2!x9"
	key := "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIPlantedKeyMaterial0123456789\n-----END EC PRIVATE KEY-----"
	for name, text := range map[string]string{
		"an assignment":                  "MSSQL_SA_PASSWORD=" + planted,
		"YAML":                           "saPassword: " + planted,
		"quoted YAML":                    `sa-password: "` + planted + `"`,
		"JSON":                           `{"level":"info","password":"` + planted + `","x":1}`,
		"JSON inside JSON":               `{"last":"{\"password\":\"` + planted + `\"}"}`,
		"a YAML block":                   "data:\n  password: |\n    " + planted + "\n\n    more " + planted + "\n  other: x",
		"a sentence":                     "the password is " + planted,
		"a connection string":            "Server=a;User Id=sa;Password=" + planted + " with blanks;Encrypt=true",
		"a connection string in braces":  "Server=a;PWD={" + planted + ";}}x};Encrypt=true",
		"a connection URL":               "sqlserver://sa:" + planted + "@host:1433?database=x",
		"T-SQL":                          "CREATE LOGIN a WITH PASSWORD = N'it''s " + planted + "'",
		"T-SQL with a hash":              "CREATE LOGIN a WITH PASSWORD = 0x0200Ab" + "C1D2 HASHED -- " + "x",
		"T-SQL encryption":               "CREATE MASTER KEY ENCRYPTION BY PASSWORD='" + planted + "'",
		"T-SQL credentials":              "CREATE CREDENTIAL c WITH IDENTITY = 'x', SECRET = '" + planted + "'",
		"T-SQL that was cut off":         "ALTER LOGIN sa WITH PASSWORD = N'" + planted,
		"a flag":                         "sqlcmd -S a -U sa -P " + planted,
		"a long flag":                    "run --admin-password " + planted + " --x",
		"a long flag with a sign":        "run --client-secret=" + planted,
		"a bearer":                       "Authorization: Bearer " + planted + "abcdef",
		"a token of a service account":   "found eyJhbGciOiJSUzI1NiIs.eyJpc3MiOiJrdWJl" + planted[:7] + ".c2ln",
		"a shared access signature":      "https://x.blob.core.windows.net/b?sv=1&sig=" + planted + "&se=2",
		"an account key":                 "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=" + planted + "==;",
		"XML":                            "<adminPassword>" + planted + "</adminPassword>",
		"a private key":                  key,
		"a private key in one line":      strings.ReplaceAll(key, "\n", `\n`),
		"a private key that was cut off": key[:60],
		"a private key in base64":        base64.StdEncoding.EncodeToString([]byte(key)),
	} {
		got := string((&Redactor{}).Text([]byte(text)))
		for _, bad := range []string{planted, planted[:7], "MHcCAQEE", "0x0200Ab", "with blanks", "LS0tLS1CRUdJTi"} {
			if strings.Contains(got, bad) {
				t.Errorf("%s: %q is left in %q", name, bad, got)
			}
		}
	}
}

func TestText_LeavesWhatAReaderNeeds(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"saPasswordSecretRef:\n  name: demo-sa\n  key: SA_PASSWORD\n",
		"volumes:\n- name: tls\n  secret:\n    defaultMode: 288\n    secretName: demo-0-tls\n- projected:\n    sources:\n    - serviceAccountToken:\n        expirationSeconds: 3607\n",
		"imagePullSecrets:\n- name: mirror\n", "secretName: demo-tls", "reason: SecretMissing", "one pass took 3 ms",
		"assigned: true", `{"signal":9,"design":"x"}`, "primary demo-0, epoch 7", "2026-08-22 08:15:17.50 spid9s Recovery is complete.",
		"apiGroup: rbac.authorization.k8s.io", "automountServiceAccountToken: false", "Lease demo-primary", "https://example.com/a:b",
		"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
	} {
		if got := string((&Redactor{}).Text([]byte(text))); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestLearn_FindsAKnownValueInEveryForm(t *testing.T) {
	t.Parallel()
	const value = `p'a"s}s]w/o&r d+Ω`
	r := &Redactor{}
	r.Learn([]byte(value + "\n"))
	r.Learn([]byte("abc")) // too short to be looked for
	for name, text := range map[string]string{
		"plain":  value,
		"base64": base64.StdEncoding.EncodeToString([]byte(value)), "base64 with its line end": base64.StdEncoding.EncodeToString([]byte(value + "\n")),
		"in JSON": `p'a\"s}s]w/o\u0026r d+Ω`, "in a URL": "p%27a%22s%7Ds%5Dw%2Fo%26r+d%2B%CE%A9", "in T-SQL": `p''a"s}s]w/o&r d+Ω`, "in braces": `p'a"s}}s]w/o&r d+Ω`,
	} {
		if got := string(r.Text([]byte("before " + text + " after"))); got != "before [redacted] after" {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := string(r.Text([]byte("abc"))); got != "abc" {
		t.Errorf("a short value was replaced: %q", got)
	}
}

func TestLearn_FindsTheLinesOfAKey(t *testing.T) {
	t.Parallel()
	r := &Redactor{}
	r.Learn([]byte("-----BEGIN X-----\nMHcCAQEEIPlantedKeyMaterial0123456789\n-----END X-----\n"))
	if got := string(r.Text([]byte("line MHcCAQEEIPlantedKeyMaterial0123456789 alone"))); strings.Contains(got, "Planted") {
		t.Error(got)
	}
}

func TestObject_TakesOutSecretsByTheirPlace(t *testing.T) {
	t.Parallel()
	const text = `
apiVersion: v1
kind: Pod
metadata:
  name: a
  managedFields: [{manager: x}]
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: '{"a":"planted"}'
    example.com/note: planted
    plain: planted
    kubectl-mssql.io/request: '{"id":"r1"}'
spec:
  containers:
  - name: c
    env:
    - {name: SOMETHING, value: planted}
    - {name: MSSQL_PID, value: Developer}
    - {name: P, valueFrom: {secretKeyRef: {name: s, key: k}}}
`
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	(&Redactor{}).Object(u)
	out, err := yaml.Marshal(u.Object)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"planted", "manager: x"} {
		if strings.Contains(string(out), bad) {
			t.Errorf("%q is left:\n%s", bad, out)
		}
	}
	for _, good := range []string{"Developer", "secretKeyRef", `"id":"r1"`, "SOMETHING"} {
		if !strings.Contains(string(out), good) {
			t.Errorf("%q is gone:\n%s", good, out)
		}
	}
	secret := &unstructured.Unstructured{Object: map[string]any{"kind": "Secret", "data": map[string]any{"a": "planted"}, "stringData": map[string]any{"b": "planted"}}}
	(&Redactor{}).Object(secret)
	if out, err := yaml.Marshal(secret.Object); err != nil || strings.Contains(string(out), "planted") {
		t.Errorf("%v\n%s", err, out)
	}
}

func FuzzText_NeverLeavesAKnownValue(f *testing.F) {
	f.Add("hunter2hunter2", "a ", " b")
	f.Fuzz(func(t *testing.T, value, before, after string) {
		if len(strings.TrimSpace(value)) < 12 || strings.Contains(before+after, value) {
			t.Skip()
		}
		r := &Redactor{}
		r.Learn([]byte(value))
		got := string(r.Text([]byte(before + value + after)))
		if strings.Contains(got, strings.TrimSpace(value)) && !strings.Contains(mark, strings.TrimSpace(value)) {
			t.Errorf("%q is left in %q", value, got)
		}
	})
}
