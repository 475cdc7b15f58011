package change

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
)

// NewID draws the id of an order: "fo-91af03c2".
func NewID(prefix string) (string, error) {
	b := make([]byte, 4)
	if _, err := rand.Read(b); err != nil {
		return "", fmt.Errorf("draw a request id: %w", err)
	}
	return prefix + "-" + hex.EncodeToString(b), nil
}

// WhoAmI asks the API server for the user's name, for the record. It is a courtesy:
// without an answer the order goes without a name.
func (c *Call) WhoAmI(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var review authenticationv1.SelfSubjectReview
	if err := c.Client.Create(ctx, &review); err != nil {
		return ""
	}
	return review.Status.UserInfo.Username
}

// Now in whole seconds, as the API writes times.
func (c *Call) Now() *metav1.Time {
	t := metav1.NewTime(c.Factory.Clock().Now().UTC().Truncate(time.Second))
	return &t
}

// Seen fills what its author saw into an order.
func (c *Call) Seen(ctx context.Context, r api.Request) api.Request {
	if c.Instance != nil {
		r.ResourceVersion = c.Instance.ResourceVersion
	} else {
		r.ExpectedPrimary, r.ExpectedSequence = c.Group.Status.PrimaryReplica, Sequence(c.Group)
		r.ResourceVersion = c.Group.ResourceVersion
	}
	r.Reason, r.At = c.Reason, c.Now()
	if DryRun(c.DryRun) != DryRunClient {
		r.By = c.WhoAmI(ctx)
	}
	return r
}

// Place writes the order into the group, or the instance.
func (c *Call) Place(ctx context.Context, r api.Request) error {
	what := "order a " + string(r.Kind) + " of"
	if c.Instance != nil {
		return c.PatchInstance(ctx, what, func(i *api.SQLServerInstance) error {
			metav1.SetMetaDataAnnotation(&i.ObjectMeta, api.AnnotationRequest, r.String())
			return nil
		})
	}
	return c.Patch(ctx, what, func(g *api.SQLServerAvailabilityGroup) error {
		metav1.SetMetaDataAnnotation(&g.ObjectMeta, api.AnnotationRequest, r.String())
		return nil
	})
}

// Pending is the order that stands in the group and is not answered yet, or nil.
func Pending(g *api.SQLServerAvailabilityGroup) *api.Request {
	r, err := api.ParseRequest(g.Annotations[api.AnnotationRequest])
	if err != nil || r == nil {
		return nil // an unreadable one is told by the operator, and may be replaced
	}
	if g.Status.Memory != nil && g.Status.Memory.HandledRequest == r.ID {
		return nil
	}
	if last := g.Status.LastRequest; last != nil && last.ID == r.ID && last.Result != api.RequestRunning {
		return nil
	}
	return r
}

// Attach gives the pending order that is the same as the one to be placed, so that it is
// followed and not placed again; another one that is pending is a conflict.
func (c *Call) Attach(same func(*api.Request) bool) (*api.Request, error) {
	p := Pending(c.Group)
	if p == nil || same(p) {
		return p, nil
	}
	target := "of all replicas"
	if p.Target != "" {
		target = "of " + p.Target
	}
	return nil, exit.Errorf(exit.Conflict,
		fmt.Sprintf("wait for it: %s status %s -w; or take it back: %s cancel %s", c.Factory.Name(), c.Name, c.Factory.Name(), p.ID),
		"a %s %s, ordered by %s, is not done yet (%s)", p.Kind, target, orSomebody(p.By), p.ID)
}

// Busy is a conflict when an operation is in flight.
func (c *Call) Busy() error {
	op := Operation(c.Group)
	if op == nil {
		return nil
	}
	return exit.Errorf(exit.Conflict, fmt.Sprintf("wait for it: %s status %s -w", c.Factory.Name(), c.Name),
		"a %s from %s to %s is under way (%s)", op.Kind, orNobody(op.From), orNobody(op.Target), op.ID)
}

// Held refuses while the operator was told to leave the resource alone: an order would stand
// there and be carried out by surprise when the pause ends.
func (c *Call) Held() error {
	var o client.Object = c.Group
	if c.Instance != nil {
		o = c.Instance
	}
	n, paused := api.Paused(o.GetAnnotations())
	if !paused {
		return nil
	}
	return exit.Errorf(exit.Refused, fmt.Sprintf("end it first: %s maintenance off %s", c.Factory.Name(), c.Name),
		"refused: %s is %s: the operator carries out nothing", c.Name, PausedText(n))
}

// PausedText says who paused it, when and why.
func PausedText(n api.PauseNote) string {
	text := "paused"
	if n.By != "" {
		text += " by " + n.By
	}
	if n.Since != nil {
		text += " at " + n.Since.UTC().Format(time.RFC3339)
	}
	if n.Reason != "" {
		text += fmt.Sprintf(" (%q)", n.Reason)
	}
	return text
}

func orSomebody(s string) string {
	if s == "" {
		return "somebody"
	}
	return s
}

// Answer is the operator's answer to an order, or nil while it has not said anything.
func Answer(g *api.SQLServerAvailabilityGroup, id string) *api.LastRequestStatus {
	if r := g.Status.LastRequest; r != nil && r.ID == id {
		return r
	}
	return nil
}
