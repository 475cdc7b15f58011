package failover

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// whoAmI asks the API server for the user's name, for the history. It is a courtesy:
// without an answer the request goes without a name.
func (o *Options) whoAmI(ctx context.Context, c client.Client) string {
	var review authenticationv1.SelfSubjectReview
	if err := c.Create(ctx, &review); err != nil {
		return ""
	}
	return review.Status.UserInfo.Username
}
