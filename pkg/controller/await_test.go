package controller

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
)

// freeAddress of the loopback interface.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func TestAControllerIsAliveWhileItWaitsForTheAPIServer(t *testing.T) {
	t.Parallel()
	var up atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !up.Load() {
			http.Error(w, "starting", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"major":"1","minor":"36"}`))
	}))
	defer server.Close()
	address := freeAddress(t)
	probe := func(path string) int {
		res, err := http.Get("http://" + address + path)
		if err != nil {
			return 0
		}
		_ = res.Body.Close()
		return res.StatusCode
	}
	done := make(chan error, 1)
	go func() {
		done <- awaitAPI(t.Context(), &rest.Config{Host: server.URL}, address, logr.Discard())
	}()
	eventually(t, "alive and not ready", func(context.Context) (bool, string) {
		return probe("/healthz") == http.StatusOK && probe("/readyz") == http.StatusServiceUnavailable, "no answer"
	})
	select {
	case err := <-done:
		t.Fatalf("it did not wait: %v", err)
	default:
	}
	up.Store(true)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if probe("/healthz") != 0 {
		t.Error("the address is still taken: the manager could not serve on it")
	}
}

func TestAControllerThatIsToldToStopDoesNotWaitForTheAPIServer(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := awaitAPI(ctx, &rest.Config{Host: "http://" + freeAddress(t)}, "0", logr.Discard())
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// The helper of the test below: it begins anew once.
func TestHelperBeginsAnew(t *testing.T) {
	switch os.Getenv("BEGINNING") {
	case "":
		t.Skip("a helper of another test")
	case "first":
		fmt.Printf("first %d\n", os.Getpid())
		t.Setenv("BEGINNING", "second")
		t.Fatal(again())
	case "second":
		fmt.Printf("second %d\n", os.Getpid())
	}
}

func TestAControllerThatLostTheLockBeginsAnewAsTheSameProcess(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHelperBeginsAnew$", "-test.v")
	cmd.Env = append(os.Environ(), "BEGINNING=first")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var first, second int
	for line := range strings.Lines(string(out)) {
		_, _ = fmt.Sscanf(line, "first %d", &first)
		_, _ = fmt.Sscanf(line, "second %d", &second)
	}
	if first == 0 || first != second {
		t.Errorf("the first run was process %d, the second %d\n%s", first, second, out)
	}
}
