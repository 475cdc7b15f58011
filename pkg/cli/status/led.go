package status

import (
	"fmt"
	"slices"
	"strings"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

// led says when Kubernetes leads clients elsewhere than to the primary: the operator has
// labelled it, and the Service has not followed. After an outage of the API server that
// can last a minute, while everything of ours is well.
func (d *Document) led(in Input) {
	if !in.LeadsKnown {
		return
	}
	d.WritesLeadTo = append([]string{}, in.WritesLeadTo...)
	if !d.Writable || d.Primary == "" || slices.Equal(in.WritesLeadTo, []string{d.Primary}) {
		return
	}
	where := "nowhere"
	if len(in.WritesLeadTo) > 0 {
		where = "to " + strings.Join(in.WritesLeadTo, ", ")
	}
	text := fmt.Sprintf("Service %s leads %s, and the primary is %s", in.Group.ListenerName(), where, d.Primary)
	d.add("ServiceLeadsElsewhere", "", text, "kubectl get endpointslices -n "+d.Namespace+" -l kubernetes.io/service-name="+in.Group.ListenerName())
	if d.Phase == string(api.PhaseHealthy) {
		d.Phase, d.Reason = string(api.PhaseDegraded), text
	}
}
