package main

import (
	"net/http"
	"regexp"
	"time"
)

// loginLife is how long a token of the login service holds.
const loginLife = time.Hour

// loginWord is what the login service takes for a user or a role.
var loginWord = regexp.MustCompile(`^[A-Za-z0-9._@-]{1,64}$`)

// loggedIn is what the login service answers.
type loggedIn struct {
	Token     string `json:"token"`
	ExpiresIn int    `json:"expires_in"` // seconds
}

// login is an upstream that gives whoever says a name a token of that name.
func login(secret []byte) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, http.StatusNotFound, map[string]string{"error": "there is only /login?user=NAME"})
	})
	mux.HandleFunc("/login", func(w http.ResponseWriter, r *http.Request) {
		user, role := r.FormValue("user"), r.FormValue("role")
		if role == "" {
			role = defaultRole
		}
		if !loginWord.MatchString(user) || !loginWord.MatchString(role) {
			writeJSON(w, http.StatusBadRequest, map[string]string{"error": "wants user=NAME and, if any, role=NAME of letters, digits and . _ @ -"})
			return
		}
		token, err := signToken(secret, user, role, loginLife)
		if err != nil {
			writeJSON(w, http.StatusInternalServerError, map[string]string{"error": err.Error()})
			return
		}
		writeJSON(w, http.StatusOK, loggedIn{Token: token, ExpiresIn: int(loginLife.Seconds())})
	})
	return http.MaxBytesHandler(mux, maxEcho)
}
