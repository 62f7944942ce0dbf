package main

import (
	"flag"
	"fmt"
	"time"
)

// defaultRole is the role in tokens whose owner asked for none.
const defaultRole = "user"

func tokenVerb() verb {
	return verb{
		name: "token",
		does: "print a signed token for trials",
		about: `usage: moongate token [--user NAME] [--role NAME] [--expires DURATION] [--secret TEXT | -c FILE]

Prints a JSON Web Token signed HS256, and nothing else. The secret is the one that the jwt filter of the configuration
verifies with, so that the gateway of the same configuration believes the token.

  curl -H "Authorization: Bearer $(moongate token --user tom)" http://localhost:8080/api/user/123
  moongate token --expires -1m      one that has expired a minute ago`,
		declare: func(fs *flag.FlagSet) func(streams) error {
			file := configFlag(fs)
			user := fs.String("user", "tom", "`NAME` the caller: the claim sub")
			role := fs.String("role", defaultRole, "`NAME` the caller's role: the claim role")
			expires := fs.Duration("expires", time.Hour, "`DURATION` time to its end; negative: it has ended")
			secret := fs.String("secret", "", "`TEXT` the secret to sign with instead of the configuration's")
			return func(s streams) error {
				key := []byte(*secret)
				if *secret == "" {
					var err error
					if key, err = tokenSecret(*file); err != nil {
						return err
					}
				}
				token, err := signToken(key, *user, *role, *expires)
				if err != nil {
					return err
				}
				fmt.Fprintln(s.out, token)
				return nil
			}
		},
	}
}
