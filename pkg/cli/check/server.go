package check

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// Server is what the API server says about itself.
type Server struct {
	// Version such as v1.36.3.
	Version string
	// Date by its own clock (whole seconds), and the middle of the call by ours.
	Date, Local time.Time
}

// AskServer reads /version; the answer's Date header is the API server's clock.
func AskServer(config *rest.Config, clk clock.PassiveClock) func(context.Context) (Server, error) {
	return func(ctx context.Context) (Server, error) {
		hc, err := rest.HTTPClientFor(config)
		if err != nil {
			return Server{}, fmt.Errorf("ask for the version: %w", err)
		}
		base, _, err := rest.DefaultServerUrlFor(config)
		if err != nil {
			return Server{}, fmt.Errorf("ask for the version: %w", err)
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(base.String(), "/")+"/version", nil)
		if err != nil {
			return Server{}, fmt.Errorf("ask for the version: %w", err)
		}
		began := clk.Now()
		resp, err := hc.Do(req)
		if err != nil {
			return Server{}, fmt.Errorf("ask for the version: %w", err)
		}
		defer func() { _ = resp.Body.Close() }()
		took := clk.Since(began)
		body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		if err != nil {
			return Server{}, fmt.Errorf("ask for the version: %w", err)
		}
		if resp.StatusCode != http.StatusOK {
			return Server{}, fmt.Errorf("ask for the version: the API server answers %s", resp.Status)
		}
		var v version.Info
		if err := json.Unmarshal(body, &v); err != nil {
			return Server{}, fmt.Errorf("ask for the version: %w", err)
		}
		s := Server{Version: v.GitVersion, Local: began.Add(took / 2)}
		if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
			s.Date = date
		}
		return s, nil
	}
}
