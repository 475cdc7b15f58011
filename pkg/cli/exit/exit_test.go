package exit

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestOf_MapsEachKindOfErrorToItsCode(t *testing.T) {
	t.Parallel()
	gr := schema.GroupResource{Resource: "pods"}
	for name, tc := range map[string]struct {
		err  error
		want Code
	}{
		"no error":                   {nil, OK},
		"any other error":            {errors.New("x"), Unexpected},
		"a refusal":                  {Errorf(Refused, "", "no"), Refused},
		"a wrapped refusal":          {fmt.Errorf("failover: %w", Errorf(Refused, "", "no")), Refused},
		"forbidden by the API":       {apierrors.NewForbidden(gr, "a", errors.New("x")), Forbidden},
		"not found at the API":       {fmt.Errorf("get: %w", apierrors.NewNotFound(gr, "a")), NotFound},
		"interrupted":                {context.Canceled, Interrupted},
		"time-out":                   {fmt.Errorf("wait: %w", context.DeadlineExceeded), Timeout},
		"a code wins over its cause": {With(Refused, "", context.Canceled), Refused},
	} {
		if got := Of(tc.err); got != tc.want {
			t.Errorf("%s: got %d, want %d", name, got, tc.want)
		}
	}
	if With(Refused, "", nil) != nil {
		t.Error("With made an error of nil")
	}
}
