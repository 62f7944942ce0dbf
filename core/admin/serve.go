package admin

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// The limits of the listener: it serves a handful of operators and scrapers.
const (
	headTimeout  = 5 * time.Second
	readTimeout  = 10 * time.Second
	writeTimeout = 60 * time.Second // a reload may take a while
	idleTimeout  = 60 * time.Second
	maxHead      = 16 << 10
	maxBody      = 64 << 10
	closeTimeout = time.Second
)

// Serve answers on ln until ctx ends, then lets answers that have begun end within a second and closes ln. It returns nil after
// such an end, otherwise why the listener broke.
func Serve(ctx context.Context, ln net.Listener, h *Handler, log *slog.Logger) error {
	srv := &http.Server{
		Handler:           http.MaxBytesHandler(h, maxBody),
		ReadHeaderTimeout: headTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHead,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	broken := make(chan error, 1)
	go func() { broken <- srv.Serve(ln) }()
	select {
	case err := <-broken:
		return err
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	err := srv.Shutdown(end)
	if errors.Is(err, context.DeadlineExceeded) {
		err = srv.Close()
	}
	<-broken
	return err
}

// Loopback tells whether only this machine reaches a listener's address.
func Loopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
