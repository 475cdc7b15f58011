//go:build linux

package instance

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// longestGap between renewals from the first to the end.
func longestGap(times []time.Time, end time.Time) time.Duration {
	var gap time.Duration
	for i := range times {
		next := end
		if i+1 < len(times) {
			next = times[i+1]
		}
		gap = max(gap, next.Sub(times[i]))
	}
	return gap
}

func TestRenewal_AHolderKeepsBothLeases(t *testing.T) {
	t.Parallel()
	inBench(t, func(t *testing.T, b *bench) {
		b.run(5 * time.Minute)
		b.api.with(func(a *benchAPI) {
			if gap := longestGap(a.renewals, time.Now()); len(a.renewals) < 100 || gap > 2500*time.Millisecond {
				t.Errorf("%d renewals of the Lease, longest gap %s", len(a.renewals), gap)
			}
		})
		b.sql.with(func(s *benchServer) {
			if gap := longestGap(s.renewals, time.Now()); len(s.renewals) < 100 || gap > 2500*time.Millisecond {
				t.Errorf("%d renewals of the write lease, longest gap %s", len(s.renewals), gap)
			}
			if s.role != ag.RolePrimary {
				t.Errorf("role %s", s.role)
			}
		})
		if k := b.killed(); k != nil {
			t.Errorf("killed: %v", k)
		}
		if got := b.m.memory.get().Authority.Epoch; got != 5 {
			t.Errorf("persisted epoch %d, want 5", got)
		}
		s := b.m.status()
		if s.GrantedAgo < 4*time.Minute || s.HighestEpoch != 5 || s.HighestRule != 3 || s.LastFailsafeAgo >= 0 {
			t.Errorf("status %+v", s)
		}
		synctest.Wait()
		b.peers.mu.Lock()
		defer b.peers.mu.Unlock()
		if len(b.peers.told) != 2 || b.peers.asked != 0 {
			t.Errorf("told %d others of the epoch, asked %d", len(b.peers.told), b.peers.asked)
		}
	})
}

func TestRenewal_SomebodyWhoDoesNotHoldItRenewsNothing(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(b *bench)
	}{
		{"another replica holds it", func(b *bench) {
			b.api.change(func(a *ag.Authority) { a.Holder = ag.Run{Replica: "ag1-1", PodUID: "pod-1", Nonce: "n"} })
		}},
		{"an earlier run of this pod holds it (R3)", func(b *bench) {
			b.api.change(func(a *ag.Authority) { a.Holder.Nonce = "earlier" })
		}},
		{"nobody holds it", func(b *bench) { b.api.change(func(a *ag.Authority) { a.Holder = ag.Run{} }) }},
		{"there is no Lease", func(b *bench) { b.api.with(func(a *benchAPI) { a.lease = nil }) }},
		{"it belongs to another resource", func(b *bench) { b.api.change(func(a *ag.Authority) { a.AGUID = "other" }) }},
		{"the server is not PRIMARY and no operation runs (R3)", func(b *bench) {
			b.sql.with(func(s *benchServer) { s.role = ag.RoleSecondary })
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBenchWith(t, tt.change, func(t *testing.T, b *bench) {
				b.peers.say(true, "ag1-1", "ag1-2") // even if the others would say yes
				b.run(time.Minute)
				b.sql.with(func(s *benchServer) {
					if len(s.renewals) > 1 {
						t.Errorf("the write lease was renewed %d times", len(s.renewals))
					}
				})
				// Before its own server has said its role, a holder may renew once.
				b.api.with(func(a *benchAPI) {
					if len(a.renewals) > 1 {
						t.Errorf("the Lease was renewed %d times", len(a.renewals))
					}
				})
			})
		})
	}
}

// A nominee renews the Lease; its server's write lease only from the phase on in which it is promoted.
func TestRenewal_ATargetOfAnOperationRenewsWhateverItsRole(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		phase       ag.OperationPhase
		least, most int
	}{
		"while the earlier holders are fenced": {ag.PhaseFencing, 0, 0},
		"while it is promoted":                 {ag.PhasePromoting, 8, 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBench(t, func(t *testing.T, b *bench) {
				b.sql.with(func(s *benchServer) { s.role = ag.RoleSecondary })
				b.api.change(func(a *ag.Authority) {
					a.Operation = &ag.Operation{ID: "1", Kind: ag.OperationFailover, Phase: tt.phase, Target: "ag1-0"}
				})
				b.run(20 * time.Second)
				b.api.with(func(a *benchAPI) {
					if len(a.renewals) < 8 {
						t.Errorf("%d renewals", len(a.renewals))
					}
				})
				b.sql.with(func(s *benchServer) {
					if n := len(s.renewals); n < tt.least || n > tt.most {
						t.Errorf("%d renewals of the write lease, want %d to %d", n, tt.least, tt.most)
					}
				})
			})
		})
	}
}

func TestRenewal_EndsWhenTheGrantIsTakenAway(t *testing.T) {
	t.Parallel()
	inBench(t, func(t *testing.T, b *bench) {
		b.run(30 * time.Second)
		b.api.change(func(a *ag.Authority) {
			a.Epoch, a.Holder = 6, ag.Run{Replica: "ag1-1", PodUID: "pod-1", Nonce: "n"}
		})
		taken := time.Now()
		b.run(time.Minute)
		b.sql.with(func(s *benchServer) {
			if last := s.renewals[len(s.renewals)-1]; last.Sub(taken) > 2500*time.Millisecond {
				t.Errorf("the write lease was renewed %s after the grant was taken", last.Sub(taken))
			}
			if s.role != ag.RoleResolving {
				t.Errorf("role %s: a server whose lease has ended stops writing by itself", s.role)
			}
		})
		if got := b.m.memory.get().Authority.Epoch; got != 6 {
			t.Errorf("persisted epoch %d, want 6", got)
		}
		if b.m.status().GrantedAgo != 0 {
			t.Error("it still says that it was granted")
		}
	})
}

// The primary of long ago is promoted again: what its manager remembers of the write
// lease is over, what the promotion's batch has set is not.
func TestRenewal_APrimaryOfLongAgoIsPromotedAgain(t *testing.T) {
	t.Parallel()
	inBench(t, func(t *testing.T, b *bench) {
		own := b.m.run
		b.run(10 * time.Second)
		b.api.change(func(a *ag.Authority) {
			a.Epoch, a.Holder = 6, ag.Run{Replica: "ag1-1", PodUID: "pod-1", Nonce: "n"}
		})
		b.sql.with(func(s *benchServer) { s.role = ag.RoleSecondary })
		b.run(time.Minute)
		b.api.change(func(a *ag.Authority) {
			a.Epoch, a.Holder = 7, own
			a.Operation = &ag.Operation{ID: "2", Kind: ag.OperationSwitchover, Phase: ag.PhasePromoting, Target: own.Replica}
		})
		granted := time.Now()
		// The server misses its answers while it is promoted.
		b.sql.with(func(s *benchServer) { s.frozen = true })
		b.run(5 * time.Second)
		if k := b.killed(); k != nil {
			t.Errorf("killed while it was promoted: %v", k)
		}
		b.sql.with(func(s *benchServer) {
			s.frozen, s.role, s.leaseUntil = false, ag.RolePrimary, time.Now().Add(b.m.timing().L)
		})
		b.run(20 * time.Second)
		if k := b.killed(); k != nil {
			t.Errorf("killed: %v", k)
		}
		b.api.with(func(a *benchAPI) {
			for _, r := range a.renewals {
				if r.After(granted) {
					if d := r.Sub(granted); d > b.m.timing().Renew+time.Second {
						t.Errorf("the first renewal came %s after the grant", d)
					}
					return
				}
			}
			t.Error("the Lease was never renewed after the grant")
		})
	})
}

// Without the API server and without peers, nothing is renewed later than A after the
// newest proof was sent, so that all ends within A + q + L of it.
func TestRenewal_WithoutProofEndsInTime(t *testing.T) {
	t.Parallel()
	inBench(t, func(t *testing.T, b *bench) {
		b.run(30 * time.Second)
		b.api.with(func(a *benchAPI) { a.down = true })
		lastProof := b.api.renewals[len(b.api.renewals)-1]
		b.run(2 * time.Minute)
		timing := b.m.timing()
		b.sql.with(func(s *benchServer) {
			last := s.renewals[len(s.renewals)-1]
			if age := last.Sub(lastProof); age > timing.A {
				t.Errorf("the write lease was renewed on a proof that was %s old", age)
			}
			if !slices.Contains(s.done, "lease expired") {
				t.Error("the write lease did not end")
			}
			if end := s.leaseUntil.Sub(lastProof); end > timing.D()-timing.M {
				t.Errorf("the server could write until %s after the last proof, more than %s", end, timing.D()-timing.M)
			}
		})
		if k := b.killed(); k != nil {
			t.Errorf("killed although the server fenced itself: %v", k)
		}
	})
}

func TestRenewal_OtherManagersCarryAPrimaryThroughAnOutage(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		yes   []string
		k     int32
		serve bool
	}{
		{"k = 1 and one says yes", []string{"ag1-2"}, 1, true},
		{"k = 1 and nobody says yes", nil, 1, false},
		{"k = 0 and only one of two says yes", []string{"ag1-1"}, 0, false},
		{"k = 0 and all say yes", []string{"ag1-1", "ag1-2"}, 0, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBenchWith(t, func(b *bench) {
				b.m.cfg.Commit.K, b.m.cfg.Commit.Required = tt.k, true
			}, func(t *testing.T, b *bench) {
				b.sql.with(func(s *benchServer) { s.k = tt.k })
				b.api.change(func(a *ag.Authority) { a.Rule.K = tt.k })
				b.run(10 * time.Second)
				b.peers.say(true, tt.yes...)
				b.api.with(func(a *benchAPI) { a.down = true })
				b.run(5 * time.Minute)
				b.sql.with(func(s *benchServer) {
					if got := s.role == ag.RolePrimary; got != tt.serve {
						t.Errorf("still PRIMARY: %t, want %t", got, tt.serve)
					}
				})
				if k := b.killed(); k != nil {
					t.Errorf("killed: %v", k)
				}
				b.api.with(func(a *benchAPI) { a.down = false })
				b.run(10 * time.Second)
				if tt.serve && time.Since(b.api.renewals[len(b.api.renewals)-1]) > 3*time.Second {
					t.Error("the Lease is not renewed after the outage")
				}
			})
		})
	}
}

func TestRenewal_ALostLeaseIsNotTheDatabases(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		harm func(b *bench)
	}{
		{"deleted", func(b *bench) { b.api.with(func(a *benchAPI) { a.lease = nil }) }},
		{"restored from a backup", func(b *bench) { b.api.change(func(a *ag.Authority) { a.Epoch = 2 }) }},
		{"restored with an older rule", func(b *bench) { b.api.change(func(a *ag.Authority) { a.Rule.Number = 1 }) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBench(t, func(t *testing.T, b *bench) {
				b.peers.say(true, "ag1-1", "ag1-2")
				b.run(10 * time.Second)
				tt.harm(b)
				harmed := time.Now()
				b.run(5 * time.Minute)
				b.sql.with(func(s *benchServer) {
					if s.role != ag.RolePrimary {
						t.Errorf("role %s", s.role)
					}
				})
				b.api.with(func(a *benchAPI) {
					if a.lease == nil && a.reads == 0 {
						t.Error("it stopped looking")
					}
					if last := a.renewals[len(a.renewals)-1]; last.After(harmed.Add(2500 * time.Millisecond)) {
						t.Error("a Lease that proves nothing was renewed")
					}
				})
			})
		})
	}
}

func TestRenewal_SurvivesAShortOutageAndSlowAnswers(t *testing.T) {
	t.Parallel()
	inBench(t, func(t *testing.T, b *bench) {
		b.run(10 * time.Second)
		for range 10 { // ten outages of 5 s, no peer helps
			b.api.with(func(a *benchAPI) { a.down = true })
			b.run(5 * time.Second)
			b.api.with(func(a *benchAPI) { a.down = false })
			b.run(15 * time.Second)
		}
		b.api.with(func(a *benchAPI) { a.delay = 1400 * time.Millisecond })
		b.run(time.Minute)
		// Updates are carried out, but their answers come after the time-out, for a while.
		for range 5 {
			b.api.with(func(a *benchAPI) { a.delay = 1600 * time.Millisecond })
			b.run(3 * time.Second)
			b.api.with(func(a *benchAPI) { a.delay = 0 })
			b.run(10 * time.Second)
		}
		b.sql.with(func(s *benchServer) {
			if s.role != ag.RolePrimary || slices.Contains(s.done, "lease expired") {
				t.Errorf("role %s, %v", s.role, s.done)
			}
		})
	})
}

func TestKill_AnExpiredLeaseUnderAPrimary(t *testing.T) {
	t.Parallel()
	inBench(t, func(t *testing.T, b *bench) {
		b.run(10 * time.Second)
		b.sql.with(func(s *benchServer) { s.sticky = true })
		b.api.with(func(a *benchAPI) { a.down = true })
		lastProof := b.api.renewals[len(b.api.renewals)-1]
		var killedAt time.Time
		for killedAt.IsZero() && time.Since(lastProof) < 2*time.Minute {
			b.run(100 * time.Millisecond)
			if k := b.killed(); k != nil {
				killedAt = time.Now()
				if k.Code != ExitLeaseKill {
					t.Errorf("exit code %d", k.Code)
				}
			}
		}
		timing := b.m.timing()
		if killedAt.IsZero() {
			t.Fatal("it was not killed")
		}
		// One renew interval more, because it is looked at once an interval.
		if after := killedAt.Sub(lastProof); after > timing.D()+timing.Renew {
			t.Errorf("killed %s after the last proof", after)
		}
	})
}

func TestKill_AFrozenPrimary(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		failures int32
		lease    bool
		code     int
	}{
		{"by its diagnostics when there is no write lease", 1, false, ExitHealthKill},
		{"by its write lease when diagnostics do not count", 0, true, ExitLeaseKill},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBenchWith(t, func(b *bench) {
				b.m.cfg.Health.Failures = tt.failures
				b.sql.with(func(s *benchServer) { s.lease = tt.lease })
			}, func(t *testing.T, b *bench) {
				b.run(20 * time.Second)
				b.sql.with(func(s *benchServer) { s.frozen = true })
				frozen := time.Now()
				var k *ExitError
				for k == nil && time.Since(frozen) < 5*time.Minute {
					b.run(100 * time.Millisecond)
					k = b.killed()
				}
				if k == nil || k.Code != tt.code {
					t.Fatalf("killed: %v", k)
				}
				if took := time.Since(frozen); took > 40*time.Second {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

// A holder that goes on renewing for a server that never says anything would be a dead end (I3).
func TestKill_AHolderThatFrozeBeforeItsRoleWasSeen(t *testing.T) {
	t.Parallel()
	inBench(t, func(t *testing.T, b *bench) {
		b.sql.with(func(s *benchServer) { s.role = ag.RoleNone })
		b.api.change(func(a *ag.Authority) {
			a.Operation = &ag.Operation{ID: "1", Kind: ag.OperationBootstrap, Phase: ag.PhaseCreating, Target: "ag1-0"}
		})
		b.run(15 * time.Second)
		b.sql.with(func(s *benchServer) { s.role, s.frozen = ag.RolePrimary, true })
		b.run(time.Minute)
		if k := b.killed(); k == nil {
			t.Error("it was not killed")
		}
	})
}

func TestKill_BadDiagnosticsOfAPrimaryOnly(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		role ag.Role
		kill bool
	}{
		{"a primary is killed after the configured number", ag.RolePrimary, true},
		{"a secondary is left alone", ag.RoleSecondary, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBench(t, func(t *testing.T, b *bench) {
				b.sql.with(func(s *benchServer) { s.role, s.bad = tt.role, true })
				b.run(15 * time.Second) // one answer
				if k := b.killed(); k != nil {
					t.Errorf("killed after the first bad answer: %v", k)
				}
				b.run(time.Minute)
				k := b.killed()
				if got := k != nil && k.Code == ExitHealthKill; got != tt.kill {
					t.Errorf("killed: %v", k)
				}
				if d := b.m.status().Diagnostics; d == nil || d.System != 3 || d.Failures < 2 {
					t.Errorf("status says %+v", d)
				}
			})
		})
	}
}

func TestClockJump_VoidsProofsAndChecksTheLease(t *testing.T) {
	t.Parallel()
	t.Run("a jump forward is survived when the remaining lease is in order", func(t *testing.T) {
		t.Parallel()
		inBench(t, func(t *testing.T, b *bench) {
			b.run(10 * time.Second)
			b.clock.jumpBy(30 * time.Second)
			b.run(time.Minute)
			if k := b.killed(); k != nil {
				t.Errorf("killed: %v", k)
			}
			b.sql.with(func(s *benchServer) {
				if s.role != ag.RolePrimary {
					t.Errorf("role %s", s.role)
				}
			})
		})
	})
	t.Run("a lease that grew by a jump back is ended by a kill (R6)", func(t *testing.T) {
		t.Parallel()
		inBench(t, func(t *testing.T, b *bench) {
			b.run(10 * time.Second)
			b.clock.jumpBy(-time.Hour)
			b.sql.with(func(s *benchServer) { s.leaseUntil = s.leaseUntil.Add(time.Hour) })
			b.run(5 * time.Second)
			if k := b.killed(); k == nil || k.Code != ExitLeaseKill {
				t.Errorf("killed: %v", k)
			}
		})
	})
}

func TestRenewal_ALeaseThatBeginsWithItsFirstRenewalIsBegun(t *testing.T) {
	t.Parallel()
	inBench(t, func(t *testing.T, b *bench) {
		b.sql.with(func(s *benchServer) { s.fresh = true })
		b.run(10 * time.Second)
		b.sql.with(func(s *benchServer) {
			if s.fresh || len(s.renewals) < 3 {
				t.Errorf("%d renewals in ten seconds", len(s.renewals))
			}
		})
		if b.m.view.snapshot().noWriteLease {
			t.Error("the group is said to have no write lease")
		}
	})
}

func TestRenewal_AGroupWithoutAWriteLeaseIsSaidSo(t *testing.T) {
	t.Parallel()
	inBench(t, func(t *testing.T, b *bench) {
		b.sql.with(func(s *benchServer) { s.lease = false })
		b.run(2 * time.Minute)
		if !b.m.view.snapshot().noWriteLease {
			t.Error("it is not known")
		}
		if k := b.killed(); k != nil {
			t.Errorf("killed: %v", k)
		}
		b.api.with(func(a *benchAPI) {
			if len(a.renewals) < 50 {
				t.Errorf("the Lease was renewed %d times", len(a.renewals))
			}
		})
	})
}

func TestKeeper_RecordsBeforeItLowersAndRaisesBeforeItRecords(t *testing.T) {
	t.Parallel()
	inBench(t, func(t *testing.T, b *bench) {
		b.run(10 * time.Second)
		order := func() (k int32, recorded int32) {
			b.sql.with(func(s *benchServer) { k = s.k })
			return k, b.api.record().Rule.K
		}
		b.sql.with(func(s *benchServer) { s.sync = map[string]bool{} })
		lost := time.Now()
		for {
			b.run(50 * time.Millisecond)
			k, recorded := order()
			if k < recorded {
				t.Fatalf("k is %d, recorded %d", k, recorded)
			}
			if k == 0 {
				break
			}
			if time.Since(lost) > 2*time.Minute {
				t.Fatal("k was not lowered")
			}
		}
		if after := time.Since(lost); after < b.m.cfg.Commit.RelaxAfter.Duration {
			t.Errorf("lowered after %s", after)
		}
		b.sql.with(func(s *benchServer) { s.sync["ag1-1"] = true })
		back := time.Now()
		for {
			b.run(50 * time.Millisecond)
			k, recorded := order()
			if recorded > k {
				t.Fatalf("k is %d, recorded %d", k, recorded)
			}
			if recorded == 1 {
				break
			}
			if time.Since(back) > time.Minute {
				t.Fatal("k was not raised")
			}
		}
		if got := b.m.memory.get().Authority.Rule; got != b.api.record().Rule.Number {
			t.Errorf("persisted rule number %d, recorded %d", got, b.api.record().Rule.Number)
		}
	})
}

func TestKeeper_LeavesTheRuleAloneDuringAnOperation(t *testing.T) {
	t.Parallel()
	inBench(t, func(t *testing.T, b *bench) {
		b.api.change(func(a *ag.Authority) {
			a.Operation = &ag.Operation{ID: "1", Kind: ag.OperationSwitchover, Phase: ag.PhaseDemoting, From: "ag1-0", Target: "ag1-1"}
		})
		b.run(10 * time.Second)
		b.sql.with(func(s *benchServer) { s.sync = map[string]bool{} })
		b.run(2 * time.Minute)
		b.sql.with(func(s *benchServer) {
			if s.k != 1 || len(b.api.swaps) != 0 {
				t.Errorf("k is %d, %d records", s.k, len(b.api.swaps))
			}
		})
	})
}

func TestKeeper_LowersNothingWithoutTheRecord(t *testing.T) {
	t.Parallel()
	inBench(t, func(t *testing.T, b *bench) {
		b.peers.say(true, "ag1-1", "ag1-2")
		b.run(10 * time.Second)
		b.api.with(func(a *benchAPI) { a.down = true })
		b.sql.with(func(s *benchServer) { s.sync = map[string]bool{} })
		b.run(3 * time.Minute)
		b.sql.with(func(s *benchServer) {
			if s.k != 1 {
				t.Errorf("k is %d: it was lowered although nothing could be recorded", s.k)
			}
		})
	})
}

func TestKeeper_TakesAMinorityPrimaryOffline(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		proof   bool
		offline bool
	}{
		{"with proof of authority it is a condition", true, false},
		{"without proof it goes offline", false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBench(t, func(t *testing.T, b *bench) {
				b.run(10 * time.Second)
				b.sql.with(func(s *benchServer) { s.pending, s.lease = 61*time.Second, false })
				b.api.with(func(a *benchAPI) { a.down = !tt.proof })
				b.run(20 * time.Second)
				b.sql.with(func(s *benchServer) {
					if got := slices.Contains(s.done, "offline"); got != tt.offline {
						t.Errorf("offline: %t", got)
					}
				})
				if !tt.offline && !b.m.view.snapshot().commitPending {
					t.Error("the condition is not shown")
				}
			})
		})
	}
}
