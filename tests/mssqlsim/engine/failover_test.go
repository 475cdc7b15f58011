package engine_test

import (
	"slices"
	"testing"
	"time"
)

func TestUnplannedFailoverKeepsEveryAcknowledgedCommit(t *testing.T) {
	t.Parallel()
	c, a, b, d := trio(t, external())
	if err := a.setRequired(1); err != nil {
		t.Fatal(err)
	}
	s := a.sa()
	for i := range 20 {
		s.mustInsert("db", i)
	}
	a.kill()
	c.run(15 * time.Second)
	if got := b.role("ag"); got != 2 {
		t.Fatalf("secondary of a dead primary: role %d, want SECONDARY", got)
	}
	if got := b.sync(b); got != "NOT SYNCHRONIZING" {
		t.Fatalf("b says %q, want NOT SYNCHRONIZING", got)
	}
	if err := b.failover(false); err != nil {
		t.Fatal(err)
	}
	b.waitPrimary()
	c.until("c follows b", 20*time.Second, func() bool { return b.sync(d) == "SYNCHRONIZED" })
	sb := b.sa()
	sb.mustInsert("db", 20)
	a.start()
	if got := a.role("ag"); got != 0 {
		t.Fatalf("restarted a: role %d, want RESOLVING", got)
	}
	if _, err := a.sa().rows("db"); number(err) != 983 {
		t.Fatalf("read on a resolving replica: %v, want 983", err)
	}
	c.run(5 * time.Second)
	if err := a.setSecondary(); err != nil {
		t.Fatal(err)
	}
	c.until("a synchronised again", 30*time.Second, func() bool { return a.role("ag") == 2 && b.sync(a) == "SYNCHRONIZED" })
	want := make([]int, 21)
	for i := range want {
		want[i] = i
	}
	for _, n := range []*node{a, b, d} {
		got, err := n.sa().rows("db")
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%s: %v %v", n.name, got, err)
		}
	}
}

func TestPlannedFailoverInPlaceSwapsTheRoles(t *testing.T) {
	t.Parallel()
	c, a, b, d := trio(t, external())
	s := a.sa()
	s.mustInsert("db", 1)
	if err := b.failover(false); err != nil {
		t.Fatal(err)
	}
	b.waitPrimary()
	c.until("a SECONDARY", 5*time.Second, func() bool { return a.role("ag") == 2 })
	c.until("all synchronised", 20*time.Second, func() bool { return b.sync(a) == "SYNCHRONIZED" && b.sync(d) == "SYNCHRONIZED" })
	b.sa().mustInsert("db", 2)
	if got, err := a.sa().rows("db"); err != nil || len(got) != 2 {
		t.Fatalf("a: %v %v", got, err)
	}
}
