package admin

import "net/http"

// Checked tells what a reload would do.
type Checked struct {
	Changes  []string // what would be different, one part of the configuration each; empty: nothing
	Warnings []string // what would be accepted and is probably not meant
}

// CheckAnswer is what POST /check says, as JSON: with status 200 when OK, with 422 when not.
type CheckAnswer struct {
	OK       bool     `json:"ok"`
	Changes  []string `json:"changes,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	Errors   []string `json:"errors,omitempty"` // "file:line: what is wrong and what would be right"
}

func check(do func() (Checked, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		found, err := do()
		if err != nil {
			answer(w, http.StatusUnprocessableEntity, CheckAnswer{Errors: Lines(err)})
			return
		}
		answer(w, http.StatusOK, CheckAnswer{OK: true, Changes: found.Changes, Warnings: found.Warnings})
	}
}
