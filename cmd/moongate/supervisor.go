package main

import (
	"fmt"
	"log/slog"
	"os"
	"strconv"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"

	"github.com/moongate/moongate/core/server"
)

// mostPassed bounds the sockets that a service manager may pass: the library makes room for as many as it says.
const mostPassed = 1024

// passedSockets takes over what the service manager has passed (sd_listen_fds(3)).
func passedSockets() (*server.Passed, error) {
	if n, err := strconv.Atoi(os.Getenv("LISTEN_FDS")); err == nil && n > mostPassed {
		return nil, fmt.Errorf("LISTEN_FDS is %d: at most %d sockets may be passed", n, mostPassed)
	}
	return server.NewPassed(activation.Files(true))
}

// What a service manager is told that has asked for it with NOTIFY_SOCKET (sd_notify(3), Type=notify-reload of systemd).
const (
	nowServing  = daemon.SdNotifyReady
	nowStopping = daemon.SdNotifyStopping
)

// nowReloading says that a reload has begun; nowServing ends it, whatever became of it.
func nowReloading() string {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return daemon.SdNotifyReloading
	}
	return fmt.Sprintf("%s\nMONOTONIC_USEC=%d", daemon.SdNotifyReloading, now.Nano()/1000)
}

// tell tells the service manager, if there is one.
func tell(log *slog.Logger, what string) {
	if _, err := daemon.SdNotify(false, what); err != nil {
		log.Debug("the service manager does not listen", "error", err)
	}
}
