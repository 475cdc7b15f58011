package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestState_ReadsBackWhatItWrote(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "sub", "state.json")
	got, err := loadState(file)
	if got != nil || err != nil {
		t.Fatalf("without a file: got %v, %v", got, err)
	}
	want := &state{
		Version: stateVersion, BootID: "b", Octet: 210, Ports: ports{API: 1},
		Nodes:     []nodeState{{Index: 2, Cuts: []Cut{{From: "node1", Direction: In}}}},
		Processes: []process{{Name: "etcd", PID: 7, Start: 9}},
	}
	if err := want.save(file); err != nil {
		t.Fatal(err)
	}
	if got, err = loadState(file); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestState_RefusesAFileOfAnotherVersion(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"another version": `{"version": 99}`, "half a file": `{"vers`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "state.json")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := loadState(file); err == nil {
				t.Errorf("got %v, want an error", got)
			}
		})
	}
}

func TestState_KeepsOneProcessOfAName(t *testing.T) {
	t.Parallel()
	var s state
	s.put(process{Name: "kubelet/node1", PID: 1})
	s.put(process{Name: "kubelet/node11", PID: 2})
	s.put(process{Name: "kubelet/node1", PID: 3})
	if p, ok := s.process("kubelet/node1"); !ok || p.PID != 3 {
		t.Errorf("got %v, want the later one", p)
	}
	s.forgetNode("node1")
	want := []process{{Name: "kubelet/node11", PID: 2}}
	if diff := cmp.Diff(want, s.Processes); diff != "" {
		t.Errorf("after forgetting node1 (-want +got):\n%s", diff)
	}
}

func TestProcess_IsNotTakenForAnotherWithItsPID(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waited := make(chan error, 1)
	go func() { waited <- cmd.Wait() }()
	start, err := startTime(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	mine := process{Name: "sleep", PID: cmd.Process.Pid, Start: start}
	other := mine
	other.Start++
	if !mine.alive() || other.alive() {
		t.Errorf("alive: got %t and %t, want true and false", mine.alive(), other.alive())
	}
	if err := other.kill(); err != nil {
		t.Fatal(err)
	}
	if !mine.alive() {
		t.Fatal("killing an earlier process with the same pid killed this one")
	}
	if err := mine.kill(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-waited:
	case <-time.After(10 * time.Second):
		t.Fatal("it outlived its kill")
	}
	if mine.alive() {
		t.Error("it is dead and shows as alive")
	}
}

func TestParseStat(t *testing.T) {
	t.Parallel()
	got, err := parseStat([]byte("42 (a ) b) S 1 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 777 8 9\n"))
	if err != nil || got != (stat{state: 'S', start: 777}) {
		t.Errorf("a name with a parenthesis: got %v, %v", got, err)
	}
	for _, text := range []string{"", "42 (x", "42 (x) S 1", "42 (x) S 1 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 many 8 9"} {
		if _, err := parseStat([]byte(text)); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("42 (a ) b) S 1 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 777 8 9\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := parseStat(data)
		if err == nil && got.state == 0 {
			t.Errorf("%q: neither a state nor an error", data)
		}
	})
}

func TestLock_HoldsOutASecondRun(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]bool{"the file stays": false, "the holder removes the file": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "lock")
			unlock, err := lockFile(t.Context(), file, func() { t.Error("it waited for nobody") })
			if err != nil {
				t.Fatal(err)
			}
			got := make(chan error, 1)
			waiting := make(chan struct{})
			go func() {
				unlock, err := lockFile(t.Context(), file, func() { close(waiting) })
				if err == nil {
					if _, statErr := os.Stat(file); statErr != nil {
						err = fmt.Errorf("it holds the lock on a file without a name: %w", statErr)
					}
					unlock()
				}
				got <- err
			}()
			<-waiting
			select {
			case err := <-got:
				t.Fatal(errors.Join(errors.New("two held the lock"), err))
			default:
			}
			if remove {
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
			}
			unlock()
			if err := <-got; err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestAllocate_GivesTwoClustersDifferentNetworksAndPorts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	octets, taken := map[int]bool{}, map[int]bool{}
	for _, name := range []string{"a", "b", "c"} {
		st, err := newLocal(Options{Name: name, Root: filepath.Join(dir, name)}).allocate(t.Context(), "boot")
		if err != nil {
			t.Fatal(err)
		}
		if octets[st.Octet] {
			t.Errorf("%s has the network of another: 10.%d", name, st.Octet)
		}
		octets[st.Octet] = true
		for _, p := range st.Ports.all() {
			if *p == 0 || taken[*p] {
				t.Errorf("%s has the port of another, or none: %d", name, *p)
			}
			taken[*p] = true
		}
	}
}
