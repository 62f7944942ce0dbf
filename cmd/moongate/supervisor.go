package main

import (
	"fmt"
	"log/slog"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"
)

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
