package lease

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// What must be remembered is the same exactly when every part of it is.
func TestPersistedIsEqualWhenEveryPartIs(t *testing.T) {
	t.Parallel()
	seal := func(epoch int64) *Seal { return &Seal{AGUID: uid, Epoch: epoch, Version: "v1"} }
	all := []Persisted{
		{}, {AGUID: uid}, {Epoch: 3}, {Rule: 3}, {Holder: ag.Run{Nonce: "n"}}, {Holder: ag.Run{BootID: "b"}},
		{Seal: &Seal{}}, {Seal: seal(3)}, {Seal: seal(3)}, {Seal: seal(4)}, {Epoch: 3, Seal: seal(3)},
	}
	for i, a := range all {
		for k, b := range all {
			t.Run(fmt.Sprint(i, k), func(t *testing.T) {
				t.Parallel()
				if got, want := a.Equal(b), reflect.DeepEqual(a, b); got != want {
					t.Errorf("%+v and %+v: %t, want %t", a, b, got, want)
				}
			})
		}
	}
}
