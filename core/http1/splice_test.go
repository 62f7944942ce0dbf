package http1

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/moongate/moongate/core"
)

// sockets are the two ends of a TCP connection.
func sockets(t testing.TB) (near, far *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a.(*net.TCPConn), b.(*net.TCPConn)
}

// passage is a body of so many bytes on its way from one socket to another.
type passage struct {
	sender, receiver *net.TCPConn // the far ends
	from, to         *Conn
	reader           BodyReader
	body             core.Body
}

func newPassage(t testing.TB, length int64, early string) *passage {
	t.Helper()
	p := &passage{}
	in, sender := sockets(t)
	out, receiver := sockets(t)
	p.sender, p.receiver, p.from, p.to = sender, receiver, NewConn(in), NewConn(out)
	if early != "" {
		if _, err := io.WriteString(sender, early); err != nil {
			t.Fatal(err)
		}
		if err := p.from.Await(); err != nil {
			t.Fatal(err)
		}
	}
	p.reader.Start(p.from, Framing{Length: length}, &p.body.Trailer)
	p.body.Attach(p.reader.Source(), length)
	return p
}

func (p *passage) send() (int64, error) {
	return SendBody(p.to, append(p.to.Begin(), "head\r\n\r\n"...), &p.body, false)
}

func noise(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func TestLongBodiesArriveWhole(t *testing.T) {
	for _, size := range []int{spliceSize - 1, spliceSize, spliceSize + 3000, 1 << 20, 5<<20 + 7} {
		data := noise(size)
		p := newPassage(t, int64(size), string(data[:3000]))
		go func() {
			_, _ = p.sender.Write(data[3000:])
			_, _ = io.WriteString(p.sender, "HTTP/1.1 200 next")
		}()
		got := make(chan []byte, 1)
		go func() {
			b := make([]byte, len("head\r\n\r\n")+size)
			_, _ = io.ReadFull(p.receiver, b)
			got <- b
		}()
		sent, err := p.send()
		if err != nil || sent != int64(size) {
			t.Fatalf("%d bytes: sent %d, %v", size, sent, err)
		}
		if b := <-got; !bytes.HasPrefix(b, []byte("head\r\n\r\n")) || crc32.ChecksumIEEE(b[8:]) != crc32.ChecksumIEEE(data) {
			t.Errorf("%d bytes did not arrive as they were", size)
		}
		if !p.reader.Ended() || p.body.Taken() != int64(size) || p.to.Written != int64(size)+8 {
			t.Errorf("%d bytes: ended %v, taken %d, written %d", size, p.reader.Ended(), p.body.Taken(), p.to.Written)
		}
		if n, err := p.body.Read(make([]byte, 10)); n != 0 || err != io.EOF {
			t.Errorf("behind the end: %d, %v", n, err)
		}
		if err := p.from.Await(); err != nil { // what follows is still there
			t.Error(err)
		}
	}
}

// spliceSize is where bodies begin to be moved in the kernel, where that is done.
const spliceSize = 64 << 10

func TestASenderThatDiesInALongBodyIsACut(t *testing.T) {
	p := newPassage(t, 1<<20, "")
	_, _ = p.sender.Write(make([]byte, 300<<10))
	p.sender.Close()
	got := make(chan int64, 1)
	go func() {
		n, _ := io.Copy(io.Discard, p.receiver)
		got <- n
	}()
	sent, err := p.send()
	if read, ok := errors.AsType[*ReadError](err); !ok || !errors.Is(read, ErrCut) || sent != 300<<10 || !p.reader.Broken() {
		t.Errorf("sent %d, %v, broken %v", sent, err, p.reader.Broken())
	}
	p.to.Close()
	if n := <-got; n != 300<<10+8 {
		t.Errorf("%d bytes arrived", n)
	}
}

func TestASenderThatPausesTooLongRunsOutOfTime(t *testing.T) {
	p := newPassage(t, 1<<20, "some")
	p.from.ReadIdle(50*time.Millisecond, 0)
	_, err := p.send()
	if read, ok := errors.AsType[*ReadError](err); !ok || !errors.Is(read, ErrTimeout) {
		t.Errorf("got %v", err)
	}
}

func TestASenderThatIsSlowButAliveIsWaitedFor(t *testing.T) {
	const size = 1 << 20
	p := newPassage(t, size, "")
	p.from.ReadIdle(2*time.Second, 0) // in all less than the body takes
	go func() { _, _ = io.Copy(io.Discard, p.receiver) }()
	go func() {
		for range 16 {
			_, _ = p.sender.Write(make([]byte, size/16))
			<-time.After(150 * time.Millisecond)
		}
	}()
	if sent, err := p.send(); err != nil || sent != size {
		t.Errorf("sent %d, %v", sent, err)
	}
}

func TestABodyHasAsLongAsItsHardLimitSays(t *testing.T) {
	p := newPassage(t, 1<<30, "")
	p.from.ReadIdle(time.Minute, core.Now().Add(100*time.Millisecond))
	go func() { _, _ = io.Copy(io.Discard, p.receiver) }()
	go func() {
		for {
			if _, err := p.sender.Write(make([]byte, 1000)); err != nil {
				return
			}
			<-time.After(5 * time.Millisecond)
		}
	}()
	if _, err := p.send(); !errors.Is(err, ErrTimeout) {
		t.Errorf("got %v", err)
	}
	p.from.Close()
}

func TestAReceiverThatTakesNothingRunsOutOfTime(t *testing.T) {
	p := newPassage(t, 1<<30, "")
	p.to.WriteIdle(100 * time.Millisecond)
	go func() { _, _ = io.Copy(p.sender, zeros{}) }()
	_, err := p.send()
	if _, reading := errors.AsType[*ReadError](err); reading || !errors.Is(err, ErrTimeout) {
		t.Errorf("got %v", err)
	}
	p.from.Close()
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestAReceiverThatIsSlowLosesNothing(t *testing.T) {
	const size = 3 << 20
	data := noise(size)
	p := newPassage(t, size, "")
	_ = p.receiver.SetReadBuffer(64 << 10)
	_ = p.to.NetConn().(*net.TCPConn).SetWriteBuffer(64 << 10)
	p.to.WriteIdle(2 * time.Second) // deadlines pass while bytes are in the pipe
	p.from.ReadIdle(2*time.Second, 0)
	go func() { _, _ = p.sender.Write(data) }()
	sum, done := crc32.NewIEEE(), make(chan error, 1)
	go func() {
		_, err := io.CopyN(io.Discard, p.receiver, 8)
		buf := make([]byte, 128<<10)
		for n := 0; err == nil && n < size; {
			var k int
			k, err = io.ReadFull(p.receiver, buf[:min(len(buf), size-n)])
			sum.Write(buf[:k])
			n += k
			<-time.After(110 * time.Millisecond)
		}
		done <- err
	}()
	if sent, err := p.send(); err != nil || sent != size {
		t.Fatalf("sent %d, %v", sent, err)
	}
	if err := <-done; err != nil || sum.Sum32() != crc32.ChecksumIEEE(data) {
		t.Errorf("%v, or not as it was", err)
	}
}

func TestAnInterruptEndsALongBody(t *testing.T) {
	p := newPassage(t, 1<<30, "")
	go func() { _, _ = io.Copy(io.Discard, p.receiver) }()
	_, _ = p.sender.Write(make([]byte, 100<<10))
	go func() {
		<-time.After(50 * time.Millisecond)
		p.from.Interrupt()
	}()
	if _, err := p.send(); !errors.Is(err, ErrTimeout) {
		t.Errorf("got %v", err)
	}
}

func BenchmarkLongBody(b *testing.B) {
	for _, size := range []int{64 << 10, 128 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			p := newPassage(b, 0, "")
			go func() { _, _ = io.Copy(io.Discard, p.receiver) }()
			piece := make([]byte, size)
			next := make(chan struct{}, 1)
			go func() {
				for range next {
					_, _ = p.sender.Write(piece)
				}
			}()
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				next <- struct{}{}
				p.body.Reset()
				p.reader.Start(p.from, Framing{Length: int64(size)}, &p.body.Trailer)
				p.body.Attach(p.reader.Source(), int64(size))
				if _, err := SendBody(p.to, p.to.Begin(), &p.body, false); err != nil {
					b.Fatal(err)
				}
			}
			close(next)
		})
	}
}

func TestManyLongBodiesAtOnceAllArrive(t *testing.T) {
	const bodies, size = 40, 300 << 10
	data := noise(size)
	done := make(chan error, bodies)
	for range bodies {
		p := newPassage(t, size, "")
		go func() { _, _ = p.sender.Write(data) }()
		go func() {
			sum := crc32.NewIEEE()
			if _, err := io.CopyN(io.Discard, p.receiver, 8); err == nil {
				_, _ = io.CopyN(sum, p.receiver, size)
			}
			if sum.Sum32() != crc32.ChecksumIEEE(data) {
				done <- errors.New("not as it was")
				return
			}
			done <- nil
		}()
		go func() { _, _ = p.send() }()
	}
	for range bodies {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
