package status

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

func TestTheReferenceNamesEveryKeyOfTheDocument(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../../docs/reference/status.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{Document{}, ReplicaRow{}, Operation{}, Lease{}, Waiting{}, Finding{}, Unseen{}} {
		typ := reflect.TypeOf(v)
		for i := range typ.NumField() {
			key, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			if key != "" && key != "kind" && !strings.Contains(string(b), "`"+key+"`") {
				t.Errorf("docs/reference/status.md does not name the key %s of %s", key, typ.Name())
			}
		}
	}
}
