package controller

import "testing"

func TestPodsAreReplacedOneAtATimeSecondariesFirstAndThePrimaryLast(t *testing.T) {
	t.Parallel()
	all := []string{"shop-0", "shop-1", "shop-2"}
	for name, c := range map[string]struct {
		f    rolloutFacts
		want string
	}{
		"nothing is outdated":               {rolloutFacts{Replicas: all, Healthy: true, Holder: "shop-0", Safe: 2}, ""},
		"the last secondary first":          {rolloutFacts{Replicas: all, Outdated: all, Healthy: true, Holder: "shop-0", Safe: 2}, "shop-2"},
		"then the other":                    {rolloutFacts{Replicas: all, Outdated: all[:2], Healthy: true, Holder: "shop-0", Safe: 2}, "shop-1"},
		"the primary last":                  {rolloutFacts{Replicas: all, Outdated: all[:1], Healthy: true, Holder: "shop-0", Safe: 2}, "shop-0"},
		"a primary that is not the first":   {rolloutFacts{Replicas: all, Outdated: all, Healthy: true, Holder: "shop-2", Safe: 2}, "shop-1"},
		"not while a replica is behind":     {rolloutFacts{Replicas: all, Outdated: all, Holder: "shop-0", Safe: 1}, ""},
		"not while an operation runs":       {rolloutFacts{Replicas: all, Outdated: all, Healthy: true, Busy: true, Holder: "shop-0", Safe: 2}, ""},
		"not the primary without a target":  {rolloutFacts{Replicas: all, Outdated: all[:1], Healthy: true, Holder: "shop-0"}, ""},
		"a secondary that a person named":   {rolloutFacts{Replicas: all, Outdated: all[1:2], Ordered: "shop-1", Recovering: true, Holder: "shop-0"}, "shop-1"},
		"a named primary without a target":  {rolloutFacts{Replicas: all, Outdated: all[:1], Ordered: "shop-0", Healthy: true, Holder: "shop-0"}, ""},
		"a named primary with a target":     {rolloutFacts{Replicas: all, Outdated: all[:1], Ordered: "shop-0", Healthy: true, Holder: "shop-0", Safe: 1}, "shop-0"},
		"not while a replica comes back":    {rolloutFacts{Replicas: all, Outdated: all, Healthy: true, Recovering: true, Holder: "shop-0", Safe: 2}, ""},
		"the only replica there is":         {rolloutFacts{Replicas: all[:1], Outdated: all[:1], Healthy: true, Holder: "shop-0", Alone: true}, "shop-0"},
		"a broken one, though not healthy":  {rolloutFacts{Replicas: all, Outdated: all, Broken: all[1:2], Holder: "shop-0"}, "shop-1"},
		"a broken primary is left alone":    {rolloutFacts{Replicas: all, Outdated: all, Broken: all[:1], Holder: "shop-0"}, ""},
		"a broken one that is not outdated": {rolloutFacts{Replicas: all, Outdated: all[:1], Broken: all[1:2], Holder: "shop-0"}, ""},
	} {
		if got := nextRollout(c.f); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
