//go:build linux

package instance

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance/managerapi"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/lease"
)

func TestMemory_OutlivesARun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m, err := openMemory(dir, "uid-1")
	if err != nil {
		t.Fatal(err)
	}
	want, err := m.update(func(p *persisted) {
		p.Authority.Epoch, p.Authority.Rule = 7, 3
		p.Authority.Seal = &lease.Seal{AGUID: "uid-1", Epoch: 8, Version: "100"}
		p.Fenced = &fenceOrder{Replica: "ag1-0", By: "dba"}
		p.Runs = 4
	})
	if err != nil {
		t.Fatal(err)
	}
	// A crash in the middle of a later write leaves a temporary file, and nothing else.
	write(t, filepath.Join(dir, ".new-123"), `{"authority":{"epoch":9`)
	again, err := openMemory(dir, "uid-1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, again.get()); diff != "" {
		t.Error(diff)
	}
}

func TestMemory_OfAnotherResourceIsForgotten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m, err := openMemory(dir, "uid-1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.update(func(p *persisted) {
		p.Authority.Epoch, p.Runs = 7, 4
		p.Fenced = &fenceOrder{Replica: "ag1-0"}
	}); err != nil {
		t.Fatal(err)
	}
	other, err := openMemory(dir, "uid-2")
	if err != nil {
		t.Fatal(err)
	}
	want := persisted{Authority: lease.Persisted{AGUID: "uid-2"}, Runs: 4}
	if diff := cmp.Diff(want, other.get()); diff != "" {
		t.Error(diff)
	}
}

func TestMemory_ThatCannotBeReadStopsTheStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, memoryName), `{"authority":`)
	if _, err := openMemory(dir, "uid-1"); err == nil || !strings.Contains(err.Error(), "not thrown away") {
		t.Errorf("got %v", err)
	}
}

// A promise that the disk does not take is not given; a truth that it does not take is
// acted on all the same.
func TestAuthority_WhenTheDiskTakesNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o770); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, dir)
	ctx := context.Background()
	seal := managerapi.SealRequest{AGUID: b.m.cfg.UID, Epoch: 9, Version: "100"}
	remove(t, dir)
	if a, err := (handler{b.m}).Seal(ctx, seal); err == nil || a.Sealed {
		t.Errorf("a seal was promised without a disk: %+v, %v", a, err)
	}
	if got := b.m.status().SealedEpoch; got != 0 {
		t.Errorf("sealed epoch %d", got)
	}
	if err := (handler{b.m}).Seen(ctx, managerapi.Seen{AGUID: b.m.cfg.UID, Epoch: 6, Rule: 4}); err == nil {
		t.Error("the disk's failure was not told")
	}
	if got := b.m.authority.get().Persisted.Epoch; got != 6 {
		t.Errorf("epoch %d: what was heard is not acted on", got)
	}
	if err := os.Mkdir(dir, 0o770); err != nil {
		t.Fatal(err)
	}
	if a, err := (handler{b.m}).Seal(ctx, seal); err != nil || !a.Sealed {
		t.Fatalf("got %+v, %v", a, err)
	}
	again, err := openMemory(dir, b.m.cfg.UID)
	if err != nil {
		t.Fatal(err)
	}
	p := again.get().Authority
	if p.Seal == nil || p.Seal.Epoch != 9 || p.Epoch != 6 || p.Rule != 4 {
		t.Errorf("on the disk: %+v", p)
	}
}

func TestFailsafe_AnswersByWhatTheOwnServerFollows(t *testing.T) {
	t.Parallel()
	asker := ag.Run{Replica: "ag1-1", PodUID: "pod-1", Nonce: "n"}
	tests := []struct {
		name   string
		change func(b *bench, local *localState, r *managerapi.FailsafeRequest)
		want   bool
		reason string
	}{
		{"a secondary of the asker", func(*bench, *localState, *managerapi.FailsafeRequest) {}, true, ""},
		{"a secondary that lost its primary", func(_ *bench, l *localState, _ *managerapi.FailsafeRequest) { l.primary = "" }, true, ""},
		{"a secondary of another primary", func(_ *bench, l *localState, _ *managerapi.FailsafeRequest) {
			l.primary = "AG1-2"
		}, false, "follows AG1-2"},
		{"a resolving replica, whatever it says of a primary", func(_ *bench, l *localState, _ *managerapi.FailsafeRequest) {
			l.role, l.primary = ag.RoleResolving, "AG1-0"
		}, true, ""},
		{"a PRIMARY itself", func(_ *bench, l *localState, _ *managerapi.FailsafeRequest) { l.role = ag.RolePrimary }, false, "PRIMARY itself"},
		{"another resource", func(_ *bench, _ *localState, r *managerapi.FailsafeRequest) { r.AGUID = "other" }, false, "another resource"},
		{"another group", func(_ *bench, _ *localState, r *managerapi.FailsafeRequest) { r.GroupID = "other" }, false, "another group"},
		{"an epoch below the seal", func(b *bench, _ *localState, _ *managerapi.FailsafeRequest) {
			_, err := (handler{b.m}).Seal(context.Background(), managerapi.SealRequest{AGUID: b.m.cfg.UID, Epoch: 9, Version: "100"})
			if err != nil {
				b.t.Fatal(err)
			}
		}, false, "sealed below epoch 9"},
		{"an epoch below what was heard", func(b *bench, _ *localState, _ *managerapi.FailsafeRequest) {
			if err := (handler{b.m}).Seen(context.Background(), managerapi.Seen{AGUID: b.m.cfg.UID, Epoch: 8}); err != nil {
				b.t.Fatal(err)
			}
		}, false, "epoch 8 was seen already"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, t.TempDir())
			local := localState{
				role: ag.RoleSecondary, groupID: "GROUP-1", primary: "AG1-1",
			}
			r := managerapi.FailsafeRequest{AGUID: b.m.cfg.UID, GroupID: "group-1", Epoch: 5, Holder: asker}
			tt.change(b, &local, &r)
			b.m.view.saw(local)
			a, err := (handler{b.m}).Failsafe(context.Background(), r)
			if err != nil || a.Granted != tt.want || !strings.Contains(a.Reason, tt.reason) {
				t.Errorf("got %+v, %v", a, err)
			}
			ago := b.m.status().LastFailsafeAgo
			if answered := ago >= 0 && ago < time.Minute; answered != tt.want {
				t.Errorf("status says that it was last answered %s ago", ago)
			}
		})
	}
}
