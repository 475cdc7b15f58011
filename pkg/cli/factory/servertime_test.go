package factory

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestServerTime_IsThatOfTheAPIServerAndOfNobodyElse(t *testing.T) {
	t.Parallel()
	own := time.Date(2031, 5, 4, 3, 2, 1, 0, time.UTC) // no clock of this machine
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		date := own
		if r.URL.Path != "/apis" {
			date = own.Add(time.Hour) // a node's clock
		}
		w.Header().Set("Date", date.Format(http.TimeFormat))
	}))
	defer server.Close()
	var c serverClock
	if now, ok := c.ServerTime(); ok {
		t.Errorf("%s before any answer", now)
	}
	client := &http.Client{Transport: c.listen(http.DefaultTransport)}
	for _, path := range []string{"/apis", "/api/v1/namespaces/prod/pods/http:sales-0:8080/proxy/status"} {
		resp, err := client.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	now, ok := c.ServerTime()
	if ahead := now.Sub(own); !ok || ahead < 0 || ahead > time.Minute {
		t.Errorf("%s, %v, want %s and what has passed since", now, ok, own)
	}
}
