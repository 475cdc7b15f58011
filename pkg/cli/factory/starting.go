package factory

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
)

// startingError: while an API server starts, kinds of custom resources are not there yet.
// "The operator is not installed" and "there is no such group" would be untrue, and their
// advice would do harm.
func startingError() error {
	return exit.Errorf(exit.Unexpected, "it does not serve everything yet: try again in a moment", "the API server is starting")
}

// startingClient tells a resource that is not there from a kind that is not served yet.
type startingClient struct {
	client.Client
	starting func() bool
}

// Get implements client.Reader.
func (c startingClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return c.judge(c.Client.Get(ctx, key, obj, opts...))
}

// List implements client.Reader.
func (c startingClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.judge(c.Client.List(ctx, list, opts...))
}

func (c startingClient) judge(err error) error {
	if notServed(err) && c.starting() {
		return startingError()
	}
	return err
}

// notServed: the answer is the web server's own 404, and speaks of no resource.
func notServed(err error) bool {
	var s apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &s) || s.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(s.Status().Details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseTypeUnexpectedServerResponse
	})
}

// readyLimit of asking whether the API server is ready; everybody may ask.
const readyLimit = 3 * time.Second

// starting asks the API server itself. Only its own No counts: whoever may not ask, or a
// proxy that knows no such page, says nothing.
func starting(c *rest.Config, h *http.Client) bool {
	ctx, cancel := context.WithTimeout(context.Background(), readyLimit)
	defer cancel()
	base, _, err := rest.DefaultServerUrlFor(c)
	if err != nil {
		return false
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("readyz").String(), nil)
	if err != nil {
		return false
	}
	resp, err := h.Do(req)
	if err != nil {
		return true // it answered a moment ago
	}
	defer func() { _ = resp.Body.Close() }()
	return resp.StatusCode >= http.StatusInternalServerError
}
