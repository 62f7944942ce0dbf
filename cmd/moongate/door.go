package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/moongate/moongate/conf"
)

// adminPatience is how long a gateway may take to say what became of a reload.
const adminPatience = 70 * time.Second

// door is where the admin listener of a running gateway is.
type door struct {
	address string
	token   string
	guess   error // why the configuration's [admin] is not known, when no address was given
}

// adminDoor finds the admin listener: at the address that was given, else where the configuration says.
func adminDoor(file, address string) door {
	d := door{address: address, token: os.Getenv("MOONGATE_ADMIN_TOKEN")}
	if d.address != "" && d.token != "" {
		return d
	}
	configured, err := conf.LoadAdmin(file, conf.Options{})
	if d.address == "" {
		d.guess = err
	}
	d.address = cmp.Or(d.address, configured.Address)
	d.token = cmp.Or(d.token, string(configured.Token))
	return d
}

// refusal is what the admin listener says when it will not listen.
type refusal struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// ask posts to a path and decodes the answer. An answer that is no answer of this path is an error.
func (d door) ask(path string, answer any) error { return d.call(http.MethodPost, path, answer) }

// call does so with any method.
func (d door) call(method, path string, answer any) error {
	ctx, cancel := context.WithTimeout(context.Background(), adminPatience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "http://"+d.address+path, nil)
	if err != nil {
		return usagef("--admin wants host:port, not %q", d.address)
	}
	if d.token != "" {
		r.Header.Set("Authorization", "Bearer "+d.token)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return d.explain(fmt.Errorf("no gateway answers: %w", err))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4<<20))
	if err != nil {
		return err
	}
	var no refusal
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusUnprocessableEntity && json.Unmarshal(body, &no) == nil && no.Message != "" {
		err := fmt.Errorf("%s answers %s: %s", d.address, resp.Status, no.Message)
		if resp.StatusCode == http.StatusUnauthorized {
			err = fmt.Errorf("%w; it is taken from [admin] of -c FILE, or from $MOONGATE_ADMIN_TOKEN", err)
		}
		return d.explain(err)
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return fmt.Errorf("%s is no admin listener of moongate: it answers %s", d.address, resp.Status)
	}
	return nil
}

// explain adds to why a gateway was asked in vain that it may be the wrong one.
func (d door) explain(err error) error {
	if d.guess == nil {
		return err
	}
	return fmt.Errorf("%w\n%s was asked, but [admin] of the configuration is not known:\n%w", err, d.address, d.guess)
}

// printLines prints one text a line.
func printLines(out io.Writer, prefix string, lines []string) {
	for _, line := range lines {
		fmt.Fprintln(out, prefix+line)
	}
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
