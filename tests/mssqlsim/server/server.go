package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/tds"
)

// Config says how an instance runs.
type Config struct {
	// Dir is the volume: what the image has under /var/opt/mssql.
	Dir string
	// Engine is passed to the engine. Keys defaults to RSA.
	Engine engine.Config
	// Address is where clients connect, such as ":1433". Admin, if not empty, is the address
	// of the dedicated administrator connection.
	Address, Admin string
	// Certificate is the server's TLS certificate; one of its own is made if it is empty.
	Certificate                  tls.Certificate
	ForceEncryption, ForceStrict bool
	// ErrorLog takes the lines of the error log.
	ErrorLog io.Writer
	// Dial opens the connections to other instances; nil means the network.
	Dial Dialer
	// RotateBytes is the size of the log after which a snapshot is taken; 0 means 8 MiB.
	RotateBytes int64
}

// Exit is how an instance ended.
type Exit struct {
	Code   int
	Reason string
	Err    error // the disk failed
}

// StoreDir is where the instance keeps its state, below Config.Dir.
const StoreDir = ".system/mssqlsim"

// Server is a running instance.
type Server struct {
	config    Config
	name      string
	host      *host
	transport *transport
	gates     gates
	sessions  sessions
	log       *errorLog
	listener  net.Listener
	admin     net.Listener

	cancel context.CancelFunc // of the TDS servers
	wait   sync.WaitGroup
	once   sync.Once
	exit   chan Exit
}

// Start opens the volume and runs the instance until Stop, Kill, SHUTDOWN or a fault. When
// it returns, clients can connect.
func Start(config Config) (*Server, error) {
	s := &Server{config: config, exit: make(chan Exit, 1), sessions: sessions{byID: map[engine.SessionID]*session{}}}
	s.log = &errorLog{w: config.ErrorLog}
	disk, st, err := openDisk(filepath.Join(config.Dir, StoreDir))
	if err != nil {
		return nil, err
	}
	var listen net.ListenConfig
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	if s.listener, err = listen.Listen(ctx, "tcp", config.Address); err != nil {
		cancel()
		_ = st.close()
		return nil, fmt.Errorf("listen for clients: %w", err)
	}
	if config.Admin != "" {
		if s.admin, err = listen.Listen(ctx, "tcp", config.Admin); err != nil {
			s.log.line("Server", fmt.Sprintf("Dedicated admin connection support was not started because of error: %v.", err))
			s.admin = nil
		}
	}

	s.host = newHost(st, disk)
	if config.RotateBytes > 0 {
		s.host.rotate = config.RotateBytes
	}
	s.host.carry, s.host.failed = s.carry, s.diskFailed
	dial := config.Dial
	if dial == nil {
		dial = (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext
	}
	s.transport = newTransport(s.host, dial, []*gate{&s.gates.process, &s.gates.links}, func(text string) { s.log.line("Logon", text) })

	engineConfig := config.Engine
	if engineConfig.Keys == nil {
		engineConfig.Keys = rsaKeys{}
	}
	if a, ok := s.listener.Addr().(*net.TCPAddr); ok {
		engineConfig.TCPPort = a.Port
	}
	s.host.run(engine.Open(engineConfig, disk, time.Now()))
	s.host.Do(func(_ time.Time, in *engine.Instance) { s.name = in.ServerName() }) // returns once the start is durable
	if err := s.serve(ctx); err != nil {
		s.Kill()
		return nil, err
	}
	return s, nil
}

// openDisk reads the volume.
func openDisk(dir string) (*engine.Disk, *store, error) {
	disk := engine.NewDisk()
	st, err := openStore(dir,
		func(b []byte) error {
			d, err := engine.RestoreDisk(b)
			if err == nil {
				disk = d
			}
			return err
		},
		func(b []byte) error { // one Persist: whole, or not there at all
			_, err := disk.ReadRecords(bytes.NewReader(b))
			return err
		})
	return disk, st, err
}

// serve starts the TDS servers.
func (s *Server) serve(ctx context.Context) error {
	config := tds.Config{
		Certificate: s.config.Certificate, ForceEncryption: s.config.ForceEncryption, ForceStrict: s.config.ForceStrict,
		ServerName: s.Name,
	}
	if config.Certificate.Certificate == nil {
		cert, err := tds.SelfSigned(time.Now(), s.Name(), "localhost", "127.0.0.1")
		if err != nil {
			return err
		}
		config.Certificate = cert
	}
	s.host.Do(func(_ time.Time, in *engine.Instance) {
		v, _ := in.Property("ProductVersion").(string)
		config.Version = wireVersion(v)
	})
	for _, l := range []struct {
		listener net.Listener
		admin    bool
	}{{s.listener, false}, {s.admin, true}} {
		if l.listener == nil {
			continue
		}
		server := tds.NewServer(logins{server: s, admin: l.admin}, config)
		s.wait.Go(func() { _ = server.Serve(ctx, gatedListener{Listener: l.listener, gates: []*gate{&s.gates.process}}) })
	}
	return nil
}

// wireVersion turns 16.0.4165.4 into the bytes of PRELOGIN.
func wireVersion(v string) [4]byte {
	var out [4]byte
	parts := strings.SplitN(v, ".", 4)
	for i := range min(2, len(parts)) {
		n, _ := strconv.ParseUint(parts[i], 10, 8)
		out[i] = byte(n)
	}
	if len(parts) > 2 {
		n, _ := strconv.ParseUint(parts[2], 10, 16)
		binary.BigEndian.PutUint16(out[2:], uint16(n))
	}
	return out
}

// carry carries out one effect; the host's applier calls it.
func (s *Server) carry(e engine.Effect) {
	switch e := e.(type) {
	case engine.Send:
		s.transport.send(e)
	case engine.Dial:
		s.transport.start(e)
	case engine.CloseLink:
		s.transport.end(e)
	case engine.Listen:
		s.transport.listen(e)
	case engine.Kill:
		s.sessions.kill(e)
	case engine.LogLine:
		s.log.write(e)
	case engine.HostFault:
		s.fault(e)
	case engine.Exit:
		s.end(Exit{Code: e.Code, Reason: e.Reason})
	}
}

func (s *Server) diskFailed(err error) {
	if errors.Is(err, errCrash) {
		s.end(Exit{Code: 137, Reason: err.Error()})
		return
	}
	s.log.line("Server", fmt.Sprintf("The log of the instance cannot be written: %v. The instance ends.", err))
	s.end(Exit{Code: 1, Reason: "disk", Err: err})
}

// end freezes the instance and lets Wait return. It does not wait for goroutines, since it
// is called from one of them.
func (s *Server) end(e Exit) {
	s.once.Do(func() {
		s.host.stop()
		s.gates.process.release()
		s.gates.links.release()
		s.cancel()
		s.transport.cancel()
		s.exit <- e
	})
}

// Name is @@SERVERNAME; a new one counts from the next start.
func (s *Server) Name() string { return s.name }

// Addr is the address on which clients connect.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Host gives access to the instance for tests in the same process.
func (s *Server) Host() engine.Host { return s.host }

// Done receives once, when the instance has ended by itself or by Stop or Kill.
func (s *Server) Done() <-chan Exit { return s.exit }

// Stop ends the instance cleanly, as SIGTERM does: checkpoints, log lines, exit code 0.
func (s *Server) Stop(ctx context.Context) error {
	stopped := make(chan struct{})
	go func() {
		s.host.Do(func(now time.Time, in *engine.Instance) { in.Stop(now) })
		close(stopped)
	}()
	select {
	case <-stopped:
	case <-ctx.Done():
	}
	s.Kill()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("stop the instance: %w", err)
	}
	return nil
}

// Kill ends the instance as SIGKILL does: what is not on the disk is lost. It returns when
// everything is closed, so that the volume can be opened again.
func (s *Server) Kill() {
	s.end(Exit{Code: 137, Reason: "killed"})
	_ = s.listener.Close()
	if s.admin != nil {
		_ = s.admin.Close()
	}
	s.transport.stop()
	s.wait.Wait()
	s.host.finished()
	_ = s.host.store.close()
}
