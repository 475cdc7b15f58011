package report

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// mark stands where a secret was.
const mark = "[redacted]"

// shortest secret value that is looked for literally: shorter ones are words of every text.
const shortest = 5

// Redactor takes secrets out of texts in two ways: values that are known, because the
// Secrets could be read, are replaced wherever and however they stand; what looks like a
// secret is replaced whether it is known or not. It errs on the side of taking too much.
//
// Its methods may be called from any goroutine.
type Redactor struct {
	mu    sync.Mutex
	known []string
	by    *strings.Replacer
}

// Learn makes a value known in every form in which it may stand in a text.
func (r *Redactor) Learn(value []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	add := func(s string) {
		if s = strings.TrimSpace(s); len(s) >= shortest && !slices.Contains(r.known, s) {
			r.known = append(r.known, s)
			r.by = nil
		}
	}
	text := string(value)
	forms := []string{text}
	if strings.Contains(strings.TrimSpace(text), "\n") { // a key: its lines may stand alone
		for line := range strings.SplitSeq(text, "\n") {
			if len(strings.TrimSpace(line)) >= 24 && !strings.HasPrefix(line, "-----") {
				forms = append(forms, line)
			}
		}
	}
	for _, f := range append(forms, strings.TrimRight(text, "\r\n")) {
		if len(strings.TrimSpace(f)) < shortest {
			continue
		}
		add(f)
		add(base64.StdEncoding.EncodeToString([]byte(f)))
		add(base64.RawURLEncoding.EncodeToString([]byte(f)))
		add(url.QueryEscape(f))
		add(url.PathEscape(f))
		add(strings.ReplaceAll(f, "'", "''"))
		add(strings.ReplaceAll(f, "]", "]]"))
		add(strings.ReplaceAll(f, "}", "}}"))
		if q, err := json.Marshal(f); err == nil {
			add(strings.Trim(string(q), `"`))
		}
	}
}

func (r *Redactor) replacer() *strings.Replacer {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		// The longest first: one secret may be part of another.
		slices.SortFunc(r.known, func(a, b string) int { return len(b) - len(a) })
		pairs := make([]string, 0, 2*len(r.known))
		for _, k := range r.known {
			pairs = append(pairs, k, mark)
		}
		r.by = strings.NewReplacer(pairs...)
	}
	return r.by
}

// sensitive are words that name a secret.
const sensitive = `(?:pass(?:word|wd|phrase|code)|pwd|secret|token|api[-_.]?key|access[-_.]?key|account[-_.]?key|private[-_.]?key|shared[-_.]?access|credentials?|authorization)`

var (
	// A private key in PEM, also one whose line ends were escaped or cut off.
	pemKey = regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`)
	// The same in base64: "-----BEGIN" begins so, whatever follows.
	pemBase64 = regexp.MustCompile(`LS0tLS1CRUdJTi[A-Za-z0-9+/=_-]{20,}`)
	jwt       = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]*)?`)
	bearer    = regexp.MustCompile(`(?i)\b(bearer|basic|negotiate)\s+[A-Za-z0-9+/=._~-]{6,}`)
	userinfo  = regexp.MustCompile(`://[^\s/@:"']*:[^\s/@"']+@`)
	// T-SQL: PASSWORD = N'x''y', ENCRYPTION BY PASSWORD = 'x', SECRET = 'x', PASSWORD = 0x01… HASHED.
	tsqlSecret = regexp.MustCompile(`(?is)\b(password|secret|identified\s+by)(\s*=?\s*)(N?'(?:''|[^'])*(?:'|\z)|0x[0-9a-f]+)`)
	// SQL Server's name for a value in braces: PWD={a;b}}c}.
	braced = regexp.MustCompile(`(?i)\b(password|pwd)\s*=\s*\{(?:\}\}|[^}])*\}`)
	// Up to the semicolon in a connection string, blanks included.
	connection = regexp.MustCompile(`(?i)\b(password|pwd)(\s*=\s*)[^;"'\n\[]+;`)
	// ?sig=… of a shared access signature, and pass=….
	short = regexp.MustCompile(`(?i)\b(sig|pass)=[^&\s;,"']+`)
	// <password>x</password>
	element = regexp.MustCompile(`(?i)(<[\w:.-]*` + sensitive + `[\w:.-]*>)[^<]+`)
	// The first line of a YAML block: password: |
	block = regexp.MustCompile(`(?i)^(\s*(?:-\s+)?)["']?[\w.\-/]*` + sensitive + `[\w.\-/]*["']?\s*:\s*[|>][-+0-9]*\s*$`)
	// key: value, key=value, "key":"value", key is value; the value quoted or to the next separator.
	keyValue = regexp.MustCompile(`(?i)(\\*["']?[\w.\-/]*` + sensitive + `[\w.\-/]*\\*["']?)([ \t]*(?:[:=]|=>|\bis\b)[ \t]*)("(?:[^"\\]|\\.)*"|\\+"[^"]*"|'(?:''|[^'])*'|[^\s,;}&"'\]]+)`)
	// --password value, -P value.
	flagValue = regexp.MustCompile(`(?im)((?:^|\s)(?:--?[\w-]*` + sensitive + `[\w-]*|-P))([ \t]+)([^\s"']+|"[^"]*"|'[^']*')`)
	// A key that only names where the secret is.
	reference = regexp.MustCompile(`(?i)(ref|refs|name|names|key_?name|namespace|policy|missing|expiration\w*|seconds|type|path|version|count|class|accesskeys|tokens?\s*left)\\*["']?$`)
	// Values that say nothing.
	harmless = regexp.MustCompile(`^["']?(?:true|false|null|\{\}?|\[\]?|""|''|\d{1,4}|\[redacted\]|-|\?|<nil>|map\[)["']?$`)
)

// Text is the text without what is known or looks like a secret.
func (r *Redactor) Text(text []byte) []byte {
	s := r.replacer().Replace(string(bytes.ToValidUTF8(text, []byte("?"))))
	s = pemKey.ReplaceAllString(s, "[redacted private key]")
	s = pemBase64.ReplaceAllString(s, mark)
	s = jwt.ReplaceAllString(s, mark)
	s = bearer.ReplaceAllString(s, "$1 "+mark)
	s = userinfo.ReplaceAllString(s, "://"+mark+"@")
	s = blocks(s)
	s = element.ReplaceAllString(s, "$1"+mark)
	s = short.ReplaceAllString(s, "$1="+mark)
	s = braced.ReplaceAllString(s, "$1="+mark)
	s = tsqlSecret.ReplaceAllString(s, "$1$2"+mark)
	s = connection.ReplaceAllString(s, "$1$2"+mark+";")
	s = flagValue.ReplaceAllString(s, "$1$2"+mark)
	s = keyValue.ReplaceAllStringFunc(s, redactPair)
	return []byte(s)
}

// blocks empties YAML blocks under a key that names a secret: the lines below it that
// are indented deeper.
func blocks(s string) string {
	if !strings.Contains(s, "|") && !strings.Contains(s, ">") {
		return s
	}
	lines := strings.SplitAfter(s, "\n")
	var b strings.Builder
	for i := 0; i < len(lines); i++ {
		b.WriteString(lines[i])
		m := block.FindStringSubmatch(strings.TrimRight(lines[i], "\r\n"))
		if m == nil {
			continue
		}
		depth := len(m[1])
		for i+1 < len(lines) && (strings.TrimSpace(lines[i+1]) == "" || indent(lines[i+1]) > depth) {
			i++
		}
		b.WriteString(strings.Repeat(" ", depth+2) + mark + "\n")
	}
	return b.String()
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

func redactPair(pair string) string {
	m := keyValue.FindStringSubmatch(pair)
	if m == nil || reference.MatchString(m[1]) || harmless.MatchString(m[3]) || strings.HasPrefix(m[3], mark) {
		return pair
	}
	quote := ""
	switch {
	case strings.HasPrefix(m[3], `\`):
		quote = m[3][:strings.Index(m[3], `"`)+1]
	case strings.HasPrefix(m[3], `"`), strings.HasPrefix(m[3], `'`):
		quote = m[3][:1]
	}
	return m[1] + m[2] + quote + mark + quote
}

// plainVariables are those whose values a report needs and that hold no secret.
func plainVariables() []string {
	return []string{"POD_NAME", "POD_NAMESPACE", "POD_UID", "POD_IP", "NODE_NAME", "TZ", "ACCEPT_EULA", "MSSQL_PID", "MSSQL_TCP_PORT", "MSSQL_ENABLE_HADR",
		"MSSQL_AGENT_ENABLED", "MSSQL_MEMORY_LIMIT_MB", "MSSQL_LCID", "MSSQL_COLLATION", "GOMAXPROCS", "GOMEMLIMIT", "OPERATOR_IMAGE"}
}

// Object takes out of an API object what may hold a secret by its place: data of
// Secrets, values of environment variables, annotations of other tools (among them the
// last applied configuration, a copy of everything), managed fields. The object is changed.
func (r *Redactor) Object(u *unstructured.Unstructured) {
	unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
	if u.GetKind() == "Secret" {
		for _, field := range []string{"data", "stringData"} {
			m, _, _ := unstructured.NestedMap(u.Object, field)
			for k := range m {
				m[k] = mark
			}
			if len(m) > 0 {
				u.Object[field] = m
			}
		}
	}
	walk(u.Object)
}

func walk(v any) {
	switch x := v.(type) {
	case map[string]any:
		for key, value := range x {
			switch key {
			case "annotations", "podAnnotations":
				annotations(value)
			case "env", "additionalEnvVars":
				variables(value)
			case "stringData":
				x[key] = mark
			}
			walk(value)
		}
	case []any:
		for _, e := range x {
			walk(e)
		}
	}
}

func annotations(v any) {
	m, ok := v.(map[string]any)
	if !ok {
		return
	}
	for key := range m {
		domain, name, _ := strings.Cut(key, "/")
		known := domain == "kubectl-mssql.io" || domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io") || strings.HasSuffix(domain, ".k8s.io")
		if !known || name == "last-applied-configuration" {
			m[key] = mark
		}
	}
}

func variables(v any) {
	list, ok := v.([]any)
	if !ok {
		return
	}
	for _, e := range list {
		m, ok := e.(map[string]any)
		if !ok {
			continue
		}
		name, _ := m["name"].(string)
		if value, has := m["value"]; has && value != "" && !slices.Contains(plainVariables(), name) {
			m["value"] = mark
		}
	}
}
