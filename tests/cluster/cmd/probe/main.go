// Command probe is the only program in the pods of the cluster's own tests. Over
// HTTP it tells what it sees and does what it is told:
//
//	/file            reads, or with POST replaces, the file on its volume
//	/lookup?name=    resolves a name as any program in a pod would
//	/get?url=        fetches a page
//	/send?to=&text=  sends one datagram
//	/seen            lists the datagrams that it got
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const patience = 2 * time.Second

type probe struct {
	dir  string
	mu   sync.Mutex
	seen []string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	p := &probe{dir: "/data"}
	if err := p.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}

func (p *probe) run(ctx context.Context) error {
	packets, err := net.ListenPacket("udp", ":9000")
	if err != nil {
		return fmt.Errorf("listen for datagrams: %w", err)
	}
	go p.receive(packets)
	mux := http.NewServeMux()
	for path, f := range map[string]func(*http.Request) (string, error){
		"/file": p.file, "/lookup": lookup, "/get": get, "/send": send,
		"/seen": func(*http.Request) (string, error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			return strings.Join(p.seen, "\n"), nil
		},
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			text, err := f(r)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadGateway)
				return
			}
			fmt.Fprint(w, text)
		})
	}
	server := &http.Server{Addr: ":8080", Handler: mux, ReadHeaderTimeout: patience}
	go func() {
		<-ctx.Done()
		_ = server.Close()
		_ = packets.Close()
	}()
	fmt.Printf("probe runs as %d:%d\n", os.Getuid(), os.Getgid())
	if err := server.ListenAndServe(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

func (p *probe) receive(c net.PacketConn) {
	b := make([]byte, 1500)
	for {
		n, _, err := c.ReadFrom(b)
		if err != nil {
			return
		}
		p.mu.Lock()
		p.seen = append(p.seen, string(b[:n]))
		p.mu.Unlock()
	}
}

func (p *probe) file(r *http.Request) (string, error) {
	name := filepath.Join(p.dir, "file")
	if r.Method == http.MethodPost {
		data, err := io.ReadAll(r.Body)
		if err != nil {
			return "", err
		}
		return "", os.WriteFile(name, data, 0o600)
	}
	data, err := os.ReadFile(name)
	return string(data), err
}

func lookup(r *http.Request) (string, error) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	got, err := net.DefaultResolver.LookupHost(ctx, r.URL.Query().Get("name"))
	return strings.Join(got, "\n"), err
}

func get(r *http.Request) (string, error) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL.Query().Get("url"), nil)
	if err != nil {
		return "", err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, data)
	}
	return string(data), err
}

func send(r *http.Request) (string, error) {
	var d net.Dialer
	conn, err := d.DialContext(r.Context(), "udp", r.URL.Query().Get("to"))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_, err = io.WriteString(conn, r.URL.Query().Get("text"))
	return "", err
}
