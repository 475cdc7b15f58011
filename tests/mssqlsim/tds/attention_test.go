package tds

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
)

// slow is a session that is busy before it begins a request: until release is closed,
// State does not answer. Its requests wait for their context.
type slow struct {
	mirror
	asked   chan struct{} // of one place: gets a value when State is asked
	release chan struct{}
	causes  chan error
}

func (s *slow) Login(context.Context, *Conn, Login) (Session, LoginResult, error) {
	return s, LoginResult{Database: "master"}, nil
}

func (s *slow) State() SessionState {
	select {
	case s.asked <- struct{}{}:
		<-s.release
	default:
	}
	return SessionState{Database: "master"}
}

func (s *slow) Execute(ctx context.Context, _ Request, _ *Response) {
	<-ctx.Done()
	s.causes <- context.Cause(ctx)
}

// loggedIn is a client's end of a plain connection after its login, and what the server
// said since.
func loggedIn(t *testing.T, h Handler) (client net.Conn, replies <-chan message) {
	t.Helper()
	client, conn := net.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		NewServer(h, Config{}).ServeConn(t.Context(), conn)
	}()
	t.Cleanup(func() {
		_ = client.Close()
		<-ended
	})
	got := make(chan message, 16)
	go func() {
		defer close(got)
		for {
			m, err := readMessage(client, 1<<20)
			if err != nil {
				return
			}
			got <- m
		}
	}()
	write(t, client, packet(typePrelogin, preloginReply([4]byte{}, encryptNotSupported)))
	<-got
	write(t, client, packet(typeLogin7, login7("sa", "Password1!", nil)))
	<-got
	return client, got
}

func write(t *testing.T, w io.Writer, b []byte) {
	t.Helper()
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
}

func batch(sql string) []byte {
	headers := []byte{22, 0, 0, 0, 18, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0}
	return packet(typeBatch, append(headers, encodeUCS2(sql)...))
}

// wantAcknowledged wants the reply of the request and behind it the DONE of the attention.
func wantAcknowledged(t *testing.T, replies <-chan message) {
	t.Helper()
	<-replies
	m := <-replies
	if len(m.payload) < 3 || m.payload[0] != tokDone || m.payload[1]&doneAttention == 0 {
		t.Fatalf("behind the reply came % x, not the acknowledgement of the attention", m.payload)
	}
}

func TestAttention_CancelsARequestThatCameBeforeItAndHasNotBegunYet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slow{asked: make(chan struct{}, 1), release: make(chan struct{}), causes: make(chan error, 1)}
		client, replies := loggedIn(t, s)
		write(t, client, batch("WAIT"))
		<-s.asked // the request has arrived, and has not begun
		write(t, client, packet(typeAttention, nil))
		synctest.Wait() // the server has read the attention
		close(s.release)
		synctest.Wait()
		select {
		case cause := <-s.causes:
			if !errors.Is(cause, ErrAttention) {
				t.Errorf("the request ended with %v", cause)
			}
		default:
			t.Fatal("the request runs on: the attention was kept until its end")
		}
		wantAcknowledged(t, replies)
	})
}

func TestAttention_OfOneRequestDoesNotReachTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slow{asked: make(chan struct{}, 1), release: make(chan struct{}), causes: make(chan error, 2)}
		client, replies := loggedIn(t, s)
		write(t, client, batch("WAIT"))
		<-s.asked
		close(s.release)
		write(t, client, packet(typeAttention, nil))
		wantAcknowledged(t, replies)
		<-s.causes
		// One that comes when nothing runs is acknowledged by itself.
		write(t, client, packet(typeAttention, nil))
		if m := <-replies; m.payload[1]&doneAttention == 0 {
			t.Errorf("% x", m.payload)
		}
		write(t, client, batch("WAIT"))
		synctest.Wait()
		select {
		case cause := <-s.causes:
			t.Errorf("the next request ended with %v", cause)
		default:
		}
		write(t, client, packet(typeAttention, nil))
		wantAcknowledged(t, replies)
	})
}
