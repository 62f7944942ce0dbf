package upstream

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Check of the gRPC health checking protocol, grpc.health.v1 (https://github.com/grpc/grpc/blob/master/doc/health-checking.md). Its two messages
// have one field each, so they are written and read here.

const (
	grpcServing  = 1 // HealthCheckResponse.ServingStatus
	grpcFrame    = 5 // bytes in front of a message: whether it is compressed, and its length
	grpcBytes    = 2 // wire type of a text, with its length
	grpcVarint   = 0
	grpcFieldOne = 1 << 3 // of HealthCheckRequest: service; of HealthCheckResponse: status
)

// grpcRequest is a HealthCheckRequest for a service in its frame.
func grpcRequest(service string) string {
	var message []byte
	if service != "" {
		message = append(message, grpcFieldOne|grpcBytes)
		message = binary.AppendUvarint(message, uint64(len(service)))
		message = append(message, service...)
	}
	return string(append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...))
}

var errGRPC = errors.New("malformed answer to a gRPC health check")

// grpcStatus reads the status of a HealthCheckResponse in its frame. One that is left away is 0, unknown.
func grpcStatus(frame []byte) (uint64, error) {
	if len(frame) < grpcFrame || frame[0] != 0 || uint32(len(frame)-grpcFrame) != binary.BigEndian.Uint32(frame[1:]) {
		return 0, errGRPC
	}
	status := uint64(0)
	for rest := frame[grpcFrame:]; len(rest) > 0; {
		field, n := binary.Uvarint(rest)
		if n <= 0 {
			return 0, errGRPC
		}
		rest = rest[n:]
		value, n := binary.Uvarint(rest)
		if n <= 0 || field&7 != grpcVarint && field&7 != grpcBytes {
			return 0, errGRPC
		}
		rest = rest[n:]
		if field&7 == grpcBytes { // of a later version
			if value > uint64(len(rest)) {
				return 0, errGRPC
			}
			rest = rest[value:]
		} else if field == grpcFieldOne {
			status = value
		}
	}
	return status, nil
}

func (c *probe) grpc(ctx context.Context) error {
	message := grpcRequest(c.opts.Service)
	r := &http.Request{
		Method: "POST", Host: c.opts.Host, URL: &url.URL{Scheme: "http", Host: c.opts.Host, Path: "/grpc.health.v1.Health/Check"},
		Header: http.Header{"User-Agent": {"moongate"}, "Content-Type": {"application/grpc"}, "Te": {"trailers"}},
		Body:   io.NopCloser(strings.NewReader(message)), ContentLength: int64(len(message)),
	}
	return c.ask(r.WithContext(ctx), func(resp *http.Response) error {
		if resp.StatusCode != 200 {
			return fmt.Errorf("status %d", resp.StatusCode)
		}
		answer, err := io.ReadAll(io.LimitReader(resp.Body, maxChecked))
		if err != nil {
			return err
		}
		code := resp.Trailer.Get("Grpc-Status")
		if code == "" { // trailers alone
			code = resp.Header.Get("Grpc-Status")
		}
		if code != "0" {
			return fmt.Errorf("gRPC status %.10q", code)
		}
		status, err := grpcStatus(answer)
		if err == nil && status != grpcServing {
			err = fmt.Errorf("not serving: status %d", status)
		}
		return err
	})
}
