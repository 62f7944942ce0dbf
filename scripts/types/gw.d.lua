---@meta gw
-- Made by `go run ./luaapi/gen` of the binding table in luaapi; changes here are lost.

---@class gw.Filter
---@field stage string stage in which the filter runs
---@field order? number place within the stage, default 50; ties by name
---@field config? table<string, any> settings: "string", number, integer, boolean, duration, size, rate, list, map, enum, secret
---@field identity? string[] headers that only this filter may set
---@field on_error? "fail"|"continue" what an error does to the request
---@field on_timeout? "fail"|"continue" what a function that spends its time budget does to it; default: as any other error
---@field leaves_bodies? boolean its functions of chunks leave bodies as they are: these keep their length and validators
---@field init? fun(conf: table): any once in each VM and for each distinct settings; what it gives is conf.state
---@field on_request? fun(req: gw.Request, ctx: gw.Context, conf: table): gw.Reply?
---@field on_response? fun(res: gw.Response, ctx: gw.Context, conf: table)
---@field on_request_chunk? fun(chunk: string, ctx: gw.Context, conf: table, last: boolean): (string|gw.Reply)? for each piece of the request's body
---@field on_response_chunk? fun(chunk: string, ctx: gw.Context, conf: table, last: boolean): string? for each piece of the answer's body
---@field on_log? fun(entry: gw.Entry, ctx: gw.Context, conf: table)

---@class gw.Reply

---@class gw.Headers
---@field [string] string?
---@field all fun(self: gw.Headers, name: string): string[]
---@field add fun(self: gw.Headers, name: string, value: string|number)

---@class gw.Query
---@field [string] string?

---@class gw.Cookies
---@field [string] string?

---@class gw.Call
---@field url? string
---@field upstream? string name of an upstream, instead of a URL
---@field path? string with an upstream; a query may follow
---@field key? string with an upstream, for balancers that hash
---@field method? string default GET, with a body POST
---@field query? table<string, string|number|string[]>
---@field headers? table<string, string|number|string[]>
---@field body? string
---@field json? any instead of body
---@field form? table<string, string|number|string[]> instead of body
---@field timeout? number|string seconds, or a text such as "500ms"

---@class gw.Redis
---@field [1] string NAME of a [redis.NAME]
---@field timeout? number|string seconds, or a text such as "50ms"

---@class gw.Request
---@field method string Method in capitals, such as `GET`. Assigning one changes what goes upstream.
---@field path string Path without query as the route table saw it: encoded unreserved characters are decoded, `%2F` stays. Assigning one changes what goes upstream and never matches again.
---@field raw_path string Path byte for byte as it came.
---@field query gw.Query Query parameters: `req.query.k` is the first value of k, nil when there is none. Assigning to a parameter changes what goes upstream; nil takes it away.
---@field raw_query string Query without the question mark, byte for byte; empty when there is none. Assigning replaces it whole; nil takes it away.
---@field host string Host that the client asked for, with its port. An assigned one goes out where the upstream's `host` is `client`.
---@field scheme string `http` or `https`, after trusted proxies were heard.
---@field client_ip string Address of the client, after trusted proxies were heard; `unix` for one without, over a Unix socket.
---@field remote_addr string Address and port of the connection's other end; `unix` over a Unix socket.
---@field headers gw.Headers Header fields, names in any case: nil when absent, else a string, several lines joined by `, `. Assigning sets one line, nil deletes. `:all(name)` lists the lines, `:add(name, value)` adds one, `pairs` walks them.
---@field cookies gw.Cookies Cookies of the request by name, the first of each. Assigning changes what goes upstream; nil takes one away.
---@field params table<string, string> What the `{name}` segments of the route's path stood for, encoded as in req.path: gw.url.decode gives the text.
---@field bearer string? Token of `Authorization: Bearer`, in any case; nil when there is none, empty when the header is malformed or sent twice.
---@field tls gw.TLS? What the client's TLS connection told: `version`, `cipher`, `server_name`; of the client's certificate `subject`, `common_name`, `fingerprint` and the lists `organizations`, `sans`, `uris`. nil on a plain one.
---@field route string? Name of the route; nil when none matched.
local req = {}

---Reads the whole body, as it came. Beyond the route's `body_buffer` the request ends with 413 before the script sees a part. After on_request a body that nobody had read is gone: nil and why.
---@return string? body empty when there is none
---@return string? err
function req:body() end

---Tells whether the whole body fits into the route's `body_buffer`, reading it that far. A body that does not goes upstream whole, and reading it would end the request with 413.
---@return boolean fits
function req:body_fits() end

---Reads the body as gw.json.decode does, uncompressed when it is gzip or deflate.
---@return any value
---@return string? err why it is no JSON
function req:json() end

---Reads one value of a JSON body, uncompressed when it is gzip or deflate, without making tables of the rest: names, and indexes from 0, joined by dots; `\.` is a dot within a name.
---@param path string such as `user.roles.0`
---@return any value nil when the path leads nowhere
---@return string? err why it is no JSON
function req:json_get(path) end

---Replaces the body. Its length stays true; Content-Encoding and digests, which no longer are, go.
---@param body string
function req:set_body(body) end

---Lists all values of a query parameter, in order; empty when there is none.
---@param name string
---@return string[] values
function req:query_all(name) end

---Adds a query parameter after all others.
---@param name string
---@param value string
function req:query_add(name, value) end

---@class gw.Response
---@field status integer Status of the answer. Assigning one from 200 to 599 replaces it.
---@field headers gw.Headers Header fields of the answer, as req.headers. Of Set-Cookie the value is the first line; `:all` lists them.
---@field source "upstream"|"filter"|"gateway" Who made the answer.
---@field req gw.Request The request, read-only: path and query as they came, headers as on_request left them.
local res = {}

---Reads the whole body, as it came. Beyond the route's `body_buffer` it is nil and `too large`, and the answer streams on untouched.
---@return string? body
---@return string? err
function res:body() end

---Reads the body as gw.json.decode does, uncompressed when it is gzip or deflate.
---@return any value
---@return string? err why it is no JSON, or `too large`
function res:json() end

---Reads one value of a JSON body, as req:json_get does.
---@param path string such as `error.code`
---@return any value nil when the path leads nowhere
---@return string? err why it is no JSON, or `too large`
function res:json_get(path) end

---Replaces the body. Its length stays true; Content-Encoding, digests, ETag, Last-Modified and ranges, which no longer are, go.
---@param body string
function res:set_body(body) end

---@class gw.Entry
---@field method string Method as it went upstream.
---@field path string Path as the route table saw it.
---@field host string Host that the client asked for.
---@field route string? Name of the route; nil when none matched.
---@field upstream string? Name of the upstream that was asked; nil when none was.
---@field endpoint string? Endpoint that was asked, as access lines and metrics show it: `host:port` or `unix:/path`; nil when none was.
---@field status integer Status of the answer; 499 when the client had left, 408 when it was too slow.
---@field source "upstream"|"filter"|"gateway"|"" Who made the answer.
---@field duration_ms number Milliseconds from the request's head to the answer's last byte.
---@field upstream_ms number? Milliseconds from the end of the request filters to the upstream's first byte; nil without an answer of it.
---@field bytes_in integer Bytes of the request's body that were read.
---@field bytes_out integer Bytes of the answer's body that were sent.
---@field client_ip string Address of the client; `unix` for one without, over a Unix socket.
---@field user string? Who the caller is, when a filter has said so.
---@field request_id string Id of the request.
---@field trace_id string Id of the trace.
---@field error string? Why the gateway failed the request; nil when it did not.
---@field req gw.Request The request, read-only.
---@field res gw.Response The answer, read-only.
local entry = {}

---Writes the access line of this request: the gateway's own members, and those of extra behind them. Without a call there is no line, and a second one raises: a request has one line. Secrets are masked as in gw.log. An extra that cannot be written, such as one of more than 64 KiB, raises, and the line goes out without it. It never waits.
---@param extra? table<string, any> further members
function entry:write(extra) end

---@class gw.Context
---@field user string? Who the caller is: what limits, logs and balancers mean by user.
---@field upstream string? Name of the upstream to send to; the route's unless a filter chose another.
---@field hash string? What `balance = "consistent_hash"` goes by, and what an upstream that is sticky by header or address goes by instead: requests with the same key go to the same endpoint. Without a key, or with an empty one, endpoints take turns.
---@field endpoint gw.Endpoint? Endpoint to send to, as gw.balance.pick gives it; later the one that was asked.
---@field request_id string Id of the request.
---@field trace_id string Id of the trace.
---@field [string] any
local ctx = {}

---@class gw.Answer
---@field status integer
---@field headers gw.Headers read-only; as req.headers
---@field body string
local answer = {}

---Reads the answer's body as gw.json.decode does.
---@return any value
---@return string? err why it is no JSON
function answer:json() end

---Reads one value of the answer's JSON body, as req:json_get does.
---@param path string such as `user.roles.0`
---@return any value nil when the path leads nowhere
---@return string? err why it is no JSON
function answer:json_get(path) end

---@class gw.Metric
local metric = {}

---Adds one to a counter.
---@param ... string a value for each label
function metric:inc(...) end

---Adds to a counter or a gauge.
---@param n number
---@param ... string a value for each label
function metric:add(n, ...) end

---Sets a gauge.
---@param n number
---@param ... string a value for each label
function metric:set(n, ...) end

---Counts a value in a histogram.
---@param seconds number
---@param ... string a value for each label
function metric:observe(seconds, ...) end

---@class gw.IPSet
local set = {}

---Tells whether an address lies in one of the networks.
---@param address string such as req.client_ip
---@return boolean lies false too for what is no address
function set:has(address) end

---@class gw.URL
---@field scheme string? in lower case
---@field user string? what stands before the `@`, as it stands
---@field host string? without the brackets of IPv6
---@field port integer? nil when the URL names none
---@field path string as it stands, percent-encoded
---@field query string? as it stands, without the question mark
---@field fragment string? as it stands, without the `#`

---@class gw.Verifier
local verifier = {}

---Tells who sent the request: `user`, `kind`, `claims`, in a policy `verifier` and, where all must pass, `others`. Or nil and the refusal: `status`, `message` for the client, `reason` for the log.
---@param req gw.Request
---@return gw.Identity? who read-only
---@return gw.Refusal? refusal
function verifier:verify(req) end

---@class gw.Identity
---@field user string? the caller's name; nil for who has none
---@field kind string of proof: jwt, api_key, basic, hmac, introspection, forward, certificate, ldap, network or anonymous
---@field verifier string? its name in a policy
---@field claims table<string, any> what the proof says beyond the name
---@field others gw.Identity[]? what the other verifiers of a policy told

---@class gw.Refusal
---@field status integer 401, 403, 503, or what another service answered
---@field message string fit for the client
---@field reason string what was wrong, for the log
---@field challenges string[] values of WWW-Authenticate

---@class gw.LimitInfo
---@field limit integer what the key may take at once when it has rested
---@field remaining integer what it could still take at once
---@field retry_after integer whole seconds after which the same take passes; 0 when it was granted or no waiting helps
---@field reset integer whole seconds after which the key is as good as new
---@field window integer whole seconds in which a limit's worth comes anew; 0 for slots
---@field limiter string the limiter's name

---@class gw.CacheOptions
---@field stale? number seconds for which an old value may stand in; default 0
---@field negative? number seconds for which it is remembered that there is none; default 1
---@field jitter? number by up to which part, 0 to 1, ttl is shortened at random; default 0
---@field wait? number seconds to wait for another's loader; default 5

---@class gw.Endpoint
---@field upstream string name of its upstream
---@field url string such as `http://10.0.0.1:8080`
---@field address string host and port
---@field weight integer

---@class gw.EndpointState
---@field endpoint gw.Endpoint
---@field url string
---@field weight integer 0 is drained
---@field ready boolean it takes requests
---@field health string ready, out (requests have failed), unhealthy (checks have failed) or drained (its weight is 0)
---@field in_flight integer connections in use

---@class gw.TLS
---@field version string such as `TLS 1.3`
---@field cipher string name of the cipher suite
---@field server_name string? that the client asked for (SNI)
---@field subject string? distinguished name of the client's certificate; nil without one
---@field common_name string? of that subject
---@field organizations string[] of that subject
---@field sans string[] names, e-mail addresses, IP addresses and URIs of the client's certificate
---@field uris string[] those of sans that are URIs, such as SPIFFE ids
---@field fingerprint string? SHA-256 of the client's certificate in hexadecimal digits

---@class gw
gw = {}

---Answers the request now: `return gw.respond(...)`. A table is sent as JSON. A string below 400 is the body as it is, from 400 the message of the standard error JSON; a body of its own kind is given with its Content-Type.
---@param status integer from 200 to 599
---@param body? string|table without one a refusal says what its status means
---@param headers? table<string, string|number|string[]> a list makes one line of each item
---@return gw.Reply reply to be returned from on_request or on_request_chunk
function gw.respond(status, body, headers) end

---Sends the client elsewhere: `return gw.redirect(url)`.
---@param url string absolute, or a path
---@param status? integer 301, 302 (default), 303, 307 or 308
---@return gw.Reply reply to be returned from on_request or on_request_chunk
function gw.redirect(url, status) end

-- Lines in the gateway's log.
gw.log = {}

---Writes a line for who debugs a filter. During a request it carries request_id and trace_id. Values of settings of the type secret are masked wherever they stand, and so are fields called `authorization`, `cookie`, `password`, `secret`, `token`, `api_key` and the like, or as `[log] mask` says, also within tables.
---@param message string three or four words
---@param fields? table<string, any> facts
function gw.log.debug(message, fields) end

---Writes a line about what is worth knowing. During a request it carries request_id and trace_id. Values of settings of the type secret are masked wherever they stand, and so are fields called `authorization`, `cookie`, `password`, `secret`, `token`, `api_key` and the like, or as `[log] mask` says, also within tables.
---@param message string three or four words
---@param fields? table<string, any> facts
function gw.log.info(message, fields) end

---Writes a line about what should be looked at. During a request it carries request_id and trace_id. Values of settings of the type secret are masked wherever they stand, and so are fields called `authorization`, `cookie`, `password`, `secret`, `token`, `api_key` and the like, or as `[log] mask` says, also within tables.
---@param message string three or four words
---@param fields? table<string, any> facts
function gw.log.warn(message, fields) end

---Writes a line about what went wrong. During a request it carries request_id and trace_id. Values of settings of the type secret are masked wherever they stand, and so are fields called `authorization`, `cookie`, `password`, `secret`, `token`, `api_key` and the like, or as `[log] mask` says, also within tables.
---@param message string three or four words
---@param fields? table<string, any> facts
function gw.log.error(message, fields) end

-- JSON that keeps its shape and its digits.
gw.json = {}

---What null is in JSON.
---@type userdata
gw.json.null = nil

---Reads JSON. Arrays and objects stay what they are when they are encoded again, null is gw.json.null, and a number that Lua cannot hold exactly keeps its digits. Of two members with one name the last counts.
---@param text string
---@return any value
---@return string? err where it is no JSON
function gw.json.decode(text) end

---Writes JSON. A table with the keys 1 to n is an array, every other an object, an empty one `{}`; gw.json.array makes an empty array. A value without a JSON form (a function, NaN, a list with a hole) raises.
---@param value any
---@return string text
function gw.json.encode(value) end

---Reads one value of a JSON text, as req:json_get does.
---@param text string
---@param path string names, and indexes from 0, joined by dots
---@return any value nil when the path leads nowhere
---@return string? err where it is no JSON
function gw.json.get(text, path) end

---Marks a table as an array, so that it is `[]` when it is empty.
---@param items? table default: a new table
---@return table array the same table
function gw.json.array(items) end

-- Bearer tokens.
gw.jwt = {}

---Checks a JSON Web Token: signature under the one algorithm that the key's settings name, times, issuer, audience, conditions. Claims that are null read as nil. The second result is fit for the client: `missing bearer token`, `token expired`, `token invalid`, `not allowed` or `temporarily unavailable`; the third for the log; the fourth is the status it means: 401, 403 or 503; the fifth what WWW-Authenticate should say.
---@param token string? such as req.bearer
---@param conf table as for gw.auth.jwt, and `realm`; durations are seconds or texts such as `5s`. Other fields are not looked at
---@return table<string, any>? claims read-only
---@return string? err why not
---@return string? reason what was wrong
---@return integer? status
---@return string? challenge
function gw.jwt.verify(token, conf) end

---Raises when no verifier can be made of the settings (a secret that is too short, a broken key): call it in init, so that they are refused at load. Key sets that are fetched need it, since fetching begins when the settings go live.
---@param conf table as for gw.auth.jwt, and `realm`; durations are seconds or texts such as `5s`. Other fields are not looked at
function gw.jwt.check(conf) end

---Signs a JSON Web Token. Settings that no signer can be made of raise: a secret that is too short, a weak or broken key, an algorithm that does not go with it.
---@param claims table<string, any> members as gw.json.encode writes them; exp, nbf and iat are seconds since 1970
---@param conf table secret (at least 32, 48 or 64 bytes), or private_key (PEM); algorithm, by default HS256, or RS256 for an RSA key; kid. Other fields are not looked at
---@param seconds? number how long the token is good: sets iat and exp, which claims must not have then
---@return string token
function gw.jwt.sign(claims, conf, seconds) end

-- Who calls, by proofs of every kind.
gw.auth = {}

---Makes a verifier of JSON Web Tokens: `secret`, `public_key` (PEM), `jwks` (a key set), `jwks_url` or `discovery = true` (the key set of the issuer); `algorithm`, `issuer`, `audience`, `required`, `claims` (conditions), `user` (the claim that names the caller: sub), `leeway` (0s), `revoked` (a store of gw.shared with ids), `revoked_ids`; for key sets that are fetched `refresh` (15m), `cooldown` (30s), `timeout` (5s), `ca` (PEM); or `issuers`, a list of tables with all of these. They stand in `Authorization: Bearer`, or where `header`, `query` or `cookie` says.
---@param conf table the settings, such as the filter's own conf; other fields are not looked at
---@return gw.Verifier verifier
function gw.auth.jwt(conf) end

---Makes a verifier of API keys, of which only a digest is kept. `keys` maps users to `{ hash = "sha256:...", tier, rate, routes, expires }`; `key_lines` is a text with one such entry a line, as JSON with its `user`. `redis` names a [redis.NAME] that is asked for the others, under `redis_prefix` (`api_key:`) and the digest's digits; its answers are kept for `keep` (1m). They stand in the header `X-Api-Key`, or where `header`, `query` or `cookie` says. The claims are `tier`, `rate` and `routes`, which are the only ones that the key is good for.
---@param conf table the settings, such as the filter's own conf; other fields are not looked at
---@return gw.Verifier verifier
function gw.auth.api_key(conf) end

---Makes a verifier of passwords (RFC 7617). `users` is a text with lines of user:hash as `htpasswd -B` makes them (bcrypt), or with argon2. A password that was right is remembered for `keep` (1m).
---@param conf table the settings, such as the filter's own conf; other fields are not looked at
---@return gw.Verifier verifier
function gw.auth.basic(conf) end

---Makes a verifier of requests signed with a shared key, as docs/auth/hmac.md says. `apps` maps names to secrets, or to `{ secret, hash = "sha512" }`; `signed_headers` lists headers that must be signed too; `redis` names a [redis.NAME] in which nonces are remembered for all gateways, under `redis_prefix` (`nonce:`).
---@param conf table the settings, such as the filter's own conf; other fields are not looked at
---@return gw.Verifier verifier
function gw.auth.hmac(conf) end

---Makes a verifier of tokens that their issuer is asked about (RFC 7662), at `url`, as `client_id` with `client_secret`, which go in the form with `post = true`. `issuer`, `audience`, `claims` and `user` as for jwt; answers are remembered for `keep` (1m) and never past exp. `timeout` (5s), `ca` (PEM). They stand in `Authorization: Bearer`, or where `header`, `query` or `cookie` says.
---@param conf table the settings, such as the filter's own conf; other fields are not looked at
---@return gw.Verifier verifier
function gw.auth.introspection(conf) end

---Makes a verifier of requests that another service decides about: it is asked at `url` with the headers of `send` (Authorization, Cookie). An answer of 2xx lets in; its header `user` (X-Auth-User) names the caller, unless `optional`, and those of `take` become claims. From 300 to 499 its answer is the client's. Else: 503. `keep` (0s) remembers good answers; `timeout` (5s), `ca` (PEM).
---@param conf table the settings, such as the filter's own conf; other fields are not looked at
---@return gw.Verifier verifier
function gw.auth.forward(conf) end

---Makes a verifier of TLS certificates of clients, which the listener has verified. `user` is the part that names the caller: `cn` (default), `subject`, `san` or `fingerprint`; `allow` maps subjects, alternative names or fingerprints to callers, and nobody else is let in. The claims are `subject`, `cn`, `o`, `ou`, `sans`, `fingerprint`.
---@param conf table the settings, such as the filter's own conf; other fields are not looked at
---@return gw.Verifier verifier
function gw.auth.certificate(conf) end

---Makes a verifier of passwords that a directory at `url` knows. Callers bind as `user_dn`, or are sought under `base` by `filter`, as `bind_dn` with `bind_password`; %s is the user. `attributes` become claims, as lists; `claims` are conditions on them. `start_tls`, `ca` (PEM), `keep` (1m), `timeout` (5s).
---@param conf table the settings, such as the filter's own conf; other fields are not looked at
---@return gw.Verifier verifier
function gw.auth.ldap(conf) end

---Makes a verifier of addresses of clients. `networks` maps names to lists of networks, or to a text with one a line; `deny` is such a list of who is nobody.
---@param conf table the settings, such as the filter's own conf; other fields are not looked at
---@return gw.Verifier verifier
function gw.auth.network(conf) end

---Joins verifiers. `verifiers` maps names to settings, each with its `kind`, as the functions of gw.auth are called. `require` says how: `any` (default) lets in with the first good proof, `all` wants all of them, `optional` lets in too who brings none, `none` asks nobody. `of` lists the names that count here, in the order in which they are asked; all of them when it is absent, by name. `anonymous` is the user of who is let in without a proof.
---@param conf table such as the filter's own conf; other fields are not looked at
---@return gw.Verifier verifier
function gw.auth.policy(conf) end

---Answers a request that a verifier has refused: 401 with a line of WWW-Authenticate for each scheme that would do, 403 for a good proof that is not enough, 503 when nobody can tell, or what another service answered.
---@param refusal gw.Refusal the second result of verifier:verify
---@return gw.Reply reply to be returned from on_request
function gw.auth.refuse(refusal) end

---Finds what a proof says by its name, or by a path of names joined by dots. Numbers keep their digits; a list of texts is joined by commas, fit for a header.
---@param who gw.Identity the first result of verifier:verify, or the claims of gw.jwt.verify
---@param path string such as `org.id`
---@return any value nil when it is not there
function gw.auth.claim(who, path) end

---Tells the upstream what a proof says: `headers` maps names of headers to claims, which are found as gw.auth.claim finds them. A header whose claim is not there is removed. Where both are read-only, the identity of a verifier and a table of the filter's settings, what is to be said is worked out once.
---@param req gw.Request
---@param who gw.Identity the first result of verifier:verify, or the claims of gw.jwt.verify
---@param headers table<string, string> such as conf.headers
function gw.auth.tell(req, who, headers) end

-- How often a caller may come.
gw.limit = {}

---Takes from the limiter for a key and tells whether that was granted. The limiter is `conf` for the filter's own, which is called ROUTE/FILTER unless the setting `limiter` names one, or the name of a `[limiter.NAME]`. Equal names share. With conf the key may be left out: it is what the setting `key` says, a kind as in gw.limit.key. From a limiter of concurrency it takes slots, which are given back when the request ends, whatever way it ends. When the limiter's Redis cannot be asked, its `on_store_error` decides; with "closed" the request ends there with 503.
---@param limiter string|table a name, or conf
---@param key? string whom to count: gw.limit.key, or any text
---@param cost? integer default 1; 0 asks without taking
---@param tier? string one of the limiter's tiers; one that it does not have counts as none
---@return boolean ok
---@return gw.LimitInfo info
function gw.limit.take(limiter, key, cost, tier) end

---Takes slots from a limiter of concurrency, as gw.limit.take does, and raises for any other. They are given back when the request ends, whatever way it ends, or by gw.limit.release.
---@param limiter string|table a name, or conf
---@param key? string as for gw.limit.take
---@param slots? integer default 1
---@return boolean ok
---@return gw.LimitInfo info
function gw.limit.acquire(limiter, key, slots) end

---Tells what gw.limit.take would, and takes nothing.
---@param limiter string|table a name, or conf
---@param key? string as for gw.limit.take
---@param cost? integer default 1
---@param tier? string as for gw.limit.take
---@return boolean ok
---@return gw.LimitInfo info
function gw.limit.peek(limiter, key, cost, tier) end

---Gives slots back that this request has taken from a limiter of concurrency, before it ends. It tells whether there were any.
---@param limiter string|table a name, or conf
---@param key? string as for gw.limit.take
---@return boolean released
function gw.limit.release(limiter, key) end

---Makes a key as good as new: its bucket full, its count 0. It fails when the limiter's Redis cannot be asked.
---@param limiter string|table a name, or conf
---@param key? string as for gw.limit.take
---@param tier? string as for gw.limit.take
---@return true? ok
---@return string? err
function gw.limit.reset(limiter, key, tier) end

---Gives the header fields that tell a client about its limit: RateLimit-Limit, -Remaining and -Reset ("ratelimit"), the same with X- before them ("x"), or RateLimit and RateLimit-Policy of the IETF's draft ("draft"); and Retry-After when the take was refused, which is all of "none".
---@param info gw.LimitInfo of gw.limit.take or gw.limit.peek
---@param style? string "ratelimit", "x", "draft" or "none"; default "ratelimit"
---@return table<string, string> headers
function gw.limit.headers(info, style) end

---Gives the text by which a request is counted: `ip`, `user` (the client's address while no user is known), `route`, `global`, or `header:NAME` (the client's address when the header is absent).
---@param kind string
---@return string key
function gw.limit.key(kind) end

-- One endpoint of an upstream.
gw.balance = {}

---Chooses an endpoint of an upstream that takes requests now, as the upstream's balancer does; assign it to ctx.endpoint.
---@param upstream string its name; an unknown one raises
---@param key? string for balancers that hash
---@return gw.Endpoint? endpoint
---@return string? err why not
function gw.balance.pick(upstream, key) end

-- Which upstreams there are.
gw.upstream = {}

---Tells whether an upstream of that name is configured; in init it finds a misspelt setting before it is used.
---@param name string
---@return boolean exists
function gw.upstream.exists(name) end

---Lists the names of all configured upstreams, sorted.
---@return string[] names
function gw.upstream.names() end

---Counts the endpoints of an upstream that take requests now, and all of them.
---@param name string an unknown one raises
---@return integer ready
---@return integer all
function gw.upstream.ready(name) end

---Lists the endpoints of an upstream with their state now: `endpoint` (for ctx.endpoint), `url`, `weight`, `ready`, `health` and `in_flight`, the connections in use.
---@param name string an unknown one raises
---@return gw.EndpointState[] endpoints in the order of the configuration
function gw.upstream.endpoints(name) end

-- Requests of a script's own.
gw.http = {}

---Makes a request and waits for the whole answer, of any status. Redirections are answers like others. nil and why when there is none: refused, too slow, too long, or an address that URLs may not lead to.
---@param call gw.Call `url`, or `upstream` (a name; unknown ones raise) with `path` and, for balancers that hash, `key`; `method` (default GET, with a body POST), `query` (a table), `headers`, one of `body` (text), `json` (any value) and `form` (a table); `timeout` (seconds, or a text such as "500ms")
---@return gw.Answer? answer
---@return string? err why not
function gw.http.request(call) end

---Makes a GET request, as gw.http.request does.
---@param target string|gw.Call a URL, or a call
---@param call? gw.Call what else to say beside a URL
---@return gw.Answer? answer
---@return string? err why not
function gw.http.get(target, call) end

---Makes a POST request, as gw.http.request does.
---@param target string|gw.Call a URL, or a call
---@param call? gw.Call what else to say beside a URL, such as `json`
---@return gw.Answer? answer
---@return string? err why not
function gw.http.post(target, call) end

---Makes several requests at once and waits for all of them. Answers and reasons stand under the keys of their calls: a call has one or the other.
---@param calls table<any, gw.Call> a list, or calls by name
---@return table<any, gw.Answer> answers
---@return table<any, string> errs empty when all were answered
function gw.http.all(calls) end

---Sends a copy of the request to another upstream when the request goes to its own: as all filters have left it, with its body as far as that is no longer than `[scripts.mirror] max_body`. Nobody waits for the copy, its answer is thrown away, and what becomes of it is counted and changes nothing for the request. A request that is answered here has no copy.
---@param upstream string its name; an unknown one raises
---@param options? table `fraction` of the requests that are copied, from 0 to 1 (default 1); `headers` that the copy has on top
---@return boolean chosen whether this request is one of the fraction
function gw.mirror(upstream, options) end

---Holds the request back, or its answer when it is answered here: once the functions of the stage have run, it waits so long before it goes on. No VM is held meanwhile; a client that leaves ends the wait. Delays of one stage add up, at most to `[scripts.delay] max`; beyond that it raises. nil and why when too many requests are held back already.
---@param time number|string seconds, or a text such as "500ms"
---@return true? ok
---@return string? err why not
function gw.delay(time) end

-- Values, counters and lists that all VMs see, over reloads too.
gw.shared = {}

---Reads a value that all VMs share; nil when it is absent, expired or was forgotten because the store was full: 32 MiB, unless a `[shared.NAME]` says otherwise. What was used longest ago is forgotten first.
---@param store string name of the store; it is made when it is first used, at most 64
---@param key string
---@return string|number|boolean|nil value
---@return string? err `a list`
function gw.shared.get(store, key) end

---Stores a string, number or boolean for all VMs, in the place of what the key has; nil takes the key away. A table is refused: store gw.json.encode(t), or keep it in gw.cache.
---@param store string name of the store; it is made when it is first used, at most 64
---@param key string
---@param value string|number|boolean|nil
---@param ttl? number seconds until it is gone; default never
---@return boolean? ok
---@return string? err `too large`: one entry may take a sixteenth of the store's capacity
function gw.shared.set(store, key, value, ttl) end

---Stores a value if the key is absent, and tells whether it was: of many who try at once, one is told true.
---@param store string name of the store; it is made when it is first used, at most 64
---@param key string
---@param value string|number|boolean
---@param ttl? number seconds until it is gone; default never
---@return boolean? added
---@return string? err `too large`: one entry may take a sixteenth of the store's capacity
function gw.shared.add(store, key, value, ttl) end

---Adds to a number and gives the sum, exactly, however many count at once. An absent key counts from 0 and lives for ttl; adding does not prolong it.
---@param store string name of the store; it is made when it is first used, at most 64
---@param key string
---@param delta? number default 1
---@param ttl? number seconds, for an absent key; default for ever
---@return number? sum
---@return string? err `not a number`
function gw.shared.incr(store, key, delta, ttl) end

---Compare and swap: stores new if the key has old, and tells whether it had. nil stands for an absent key, in both places. Of many who try at once with one old value, one succeeds. Without a ttl the entry ends when it would have ended.
---@param store string name of the store; it is made when it is first used, at most 64
---@param key string
---@param old string|number|boolean|nil
---@param new string|number|boolean|nil
---@param ttl? number seconds until it is gone
---@return boolean? swapped
---@return string|number|boolean|nil current what the key has now; the error after nil
function gw.shared.cas(store, key, old, new, ttl) end

---Takes a key away, whatever it has, and tells whether it was there.
---@param store string name of the store; it is made when it is first used, at most 64
---@param key string
---@return boolean deleted
function gw.shared.delete(store, key) end

---Tells for how many more seconds a key will be there: `math.huge` for ever; nil when it is not there.
---@param store string name of the store; it is made when it is first used, at most 64
---@param key string
---@return number? seconds
function gw.shared.ttl(store, key) end

---Sets for how many more seconds a key will be there, list or value, and tells whether it is.
---@param store string name of the store; it is made when it is first used, at most 64
---@param key string
---@param ttl? number seconds; default for ever
---@return boolean there
function gw.shared.expire(store, key, ttl) end

---Puts a value into a list as its first one and tells how long the list is now. An absent key becomes a list, which is gone once it is empty.
---@param store string name of the store; it is made when it is first used, at most 64
---@param key string
---@param value string|number|boolean
---@return integer? length
---@return string? err `not a list`, or `too large`: a list may take a sixteenth of the store's capacity
function gw.shared.lpush(store, key, value) end

---Puts a value into a list as its last one and tells how long the list is now. An absent key becomes a list, which is gone once it is empty.
---@param store string name of the store; it is made when it is first used, at most 64
---@param key string
---@param value string|number|boolean
---@return integer? length
---@return string? err `not a list`, or `too large`: a list may take a sixteenth of the store's capacity
function gw.shared.rpush(store, key, value) end

---Takes the first value off a list: of many who take at once, each gets another. nil when there is none.
---@param store string name of the store; it is made when it is first used, at most 64
---@param key string
---@return string|number|boolean|nil value
---@return string? err `not a list`
function gw.shared.lpop(store, key) end

---Takes the last value off a list: of many who take at once, each gets another. nil when there is none.
---@param store string name of the store; it is made when it is first used, at most 64
---@param key string
---@return string|number|boolean|nil value
---@return string? err `not a list`
function gw.shared.rpop(store, key) end

---Tells how many values a list has; 0 when it is not there.
---@param store string name of the store; it is made when it is first used, at most 64
---@param key string
---@return integer? length
---@return string? err `not a list`
function gw.shared.llen(store, key) end

-- What is dear to make: kept for a while, and made by one for all who want it at once.
gw.cache = {}

---Gives what the filter keeps under a key, or calls loader to make it. Of all requests that want a key at once one calls its loader, the others wait for what it gives. The loader gives a value, which is kept for ttl, or `nil` or `nil, err`, which is kept for `negative`; after value and err it may give another ttl in seconds, 0 to keep nothing. When it raises, all who wait raise; with `stale` those who ask get the old value and err. A table is kept as a read-only copy. What a filter keeps is its own, for all VMs, and lives on over reloads that leave its script, its libraries and its settings as they are.
---@param key string
---@param ttl number seconds
---@param loader fun(): any, string?, number?
---@param options? gw.CacheOptions `stale`: seconds for which an old value may stand in while a new one cannot be had or is being made, default 0; `negative`: seconds, default 1; `jitter`: by up to which part, 0 to 1, ttl is shortened at random, default 0; `wait`: seconds to wait for another's loader, default 5
---@return any value nil when there is none
---@return string? err why there is none, or why the value is old
function gw.cache.get_or(key, ttl, loader, options) end

---Gives what the filter keeps under a key; nil when there is nothing or its time is over.
---@param key string
---@return any value
function gw.cache.get(key) end

---Keeps a value for ttl, in the place of what the key has. A table is kept as a read-only copy. What a filter keeps is its own, for all VMs, and lives on over reloads that leave its script, its libraries and its settings as they are.
---@param key string
---@param value any string, number, boolean or table
---@param ttl number seconds
---@return boolean? ok
---@return string? err `too large`
function gw.cache.set(key, value, ttl) end

---Takes a key away and tells whether it was there.
---@param key string
---@return boolean deleted
function gw.cache.delete(key) end

-- The Redis servers of the configuration.
gw.redis = {}

---Sends one command. Those that wait, subscribe, or change a connection that others share, and those that administrate the server, raise. What Redis has not is nil, without err; in a list it is gw.json.null. A hash is a table by its fields, a number that a float cannot hold keeps its digits. When Redis cannot be asked within its `timeout`, or says no, the result is nil and err; nothing is sent twice. `{ "main", timeout = 0.02 }` instead of `"main"` waits no longer than that.
---@param redis string|gw.Redis NAME of a `[redis.NAME]`; or a table of it and `timeout` (seconds, or a text such as "50ms"), when that is shorter
---@param command string such as `GET`
---@param ...? string|number its arguments
---@return any value
---@return string? err why not
function gw.redis.call(redis, command, ...) end

---Sends several commands in one go and gives their answers in order. They are no transaction: others may come between them. A command that Redis refuses has gw.json.null for an answer, and err tells of the first one. What Redis has not is nil, without err; in a list it is gw.json.null. A hash is a table by its fields, a number that a float cannot hold keeps its digits. When Redis cannot be asked within its `timeout`, or says no, the result is nil and err; nothing is sent twice. `{ "main", timeout = 0.02 }` instead of `"main"` waits no longer than that.
---@param redis string|gw.Redis NAME of a `[redis.NAME]`; or a table of it and `timeout` (seconds, or a text such as "50ms"), when that is shorter
---@param commands (string|number)[][] such as { { "INCR", "n" }, { "EXPIRE", "n", 60 } }
---@return any[]? answers
---@return string? err why not
function gw.redis.pipeline(redis, commands) end

---Runs a script in Redis, where nothing comes between what it does. It goes there as a whole once; after that its digest does. What Redis has not is nil, without err; in a list it is gw.json.null. A hash is a table by its fields, a number that a float cannot hold keeps its digits. When Redis cannot be asked within its `timeout`, or says no, the result is nil and err; nothing is sent twice. `{ "main", timeout = 0.02 }` instead of `"main"` waits no longer than that.
---@param redis string|gw.Redis NAME of a `[redis.NAME]`; or a table of it and `timeout` (seconds, or a text such as "50ms"), when that is shorter
---@param script string Lua, with KEYS and ARGV
---@param keys? string[] in a Cluster they share a hash tag
---@param args? (string|number)[]
---@return any value
---@return string? err why not
function gw.redis.eval(redis, script, keys, args) end

-- Digests, signatures with a shared key, and texts that carry bytes.
gw.crypto = {}

---Gives the digest of data as bytes; gw.crypto.hex_encode makes text of them.
---@param data string
---@return string digest bytes, not text
function gw.crypto.sha256(data) end

---Gives the digest of data as bytes; gw.crypto.hex_encode makes text of them.
---@param data string
---@return string digest bytes, not text
function gw.crypto.sha384(data) end

---Gives the digest of data as bytes; gw.crypto.hex_encode makes text of them.
---@param data string
---@return string digest bytes, not text
function gw.crypto.sha512(data) end

---Gives the digest of data as bytes; gw.crypto.hex_encode makes text of them. For old protocols only.
---@param data string
---@return string digest bytes, not text
function gw.crypto.sha1(data) end

---Gives the digest of data as bytes; gw.crypto.hex_encode makes text of them. For old protocols only.
---@param data string
---@return string digest bytes, not text
function gw.crypto.md5(data) end

---Signs data with a shared key (RFC 2104) and gives the bytes; compare them with gw.crypto.equal.
---@param hash "sha1"|"sha256"|"sha384"|"sha512"|"md5"
---@param key string
---@param data string
---@return string mac bytes, not text
function gw.crypto.hmac(hash, key, data) end

---Compares two texts in a time that tells nothing about where they differ.
---@param x string
---@param y string
---@return boolean equal
function gw.crypto.equal(x, y) end

---Gives bytes that nobody can guess.
---@param n integer how many, up to 65536
---@return string bytes
function gw.crypto.random(n) end

---Writes bytes as hexadecimal digits.
---@param bytes string
---@return string text
function gw.crypto.hex_encode(bytes) end

---Reads hexadecimal digits.
---@param text string
---@return string? bytes
---@return string? err why not
function gw.crypto.hex_decode(text) end

---Writes bytes as base64 (RFC 4648 section 4).
---@param bytes string
---@return string text
function gw.crypto.base64_encode(bytes) end

---Reads base64, strictly.
---@param text string
---@return string? bytes
---@return string? err why not
function gw.crypto.base64_decode(text) end

---Writes bytes as base64url without padding (RFC 4648 section 5).
---@param bytes string
---@return string text
function gw.crypto.base64url_encode(bytes) end

---Reads base64url without padding, strictly.
---@param text string
---@return string? bytes
---@return string? err why not
function gw.crypto.base64url_decode(text) end

---Encrypts and authenticates data with AES-GCM (NIST SP 800-38D) under a new random nonce, which is the first 12 bytes of what it gives. One key is good for four thousand million messages.
---@param key string 16, 24 or 32 bytes, not text: AES-128, -192 or -256
---@param data string
---@param beside? string what is not encrypted but must be the same on both sides
---@return string sealed bytes, 28 more than data
function gw.crypto.encrypt(key, data, beside) end

---Gives back what gw.crypto.encrypt was given; nil when the key is another one or anything was changed.
---@param key string 16, 24 or 32 bytes, not text: AES-128, -192 or -256
---@param sealed string bytes: nonce, encrypted data, tag
---@param beside? string what is not encrypted but must be the same on both sides
---@return string? data
---@return string? err why not
function gw.crypto.decrypt(key, sealed, beside) end

---Signs data with a private key and gives the bytes. What ES gives is the pair of numbers of RFC 7518 section 3.4, not ASN.1. For a shared key there is gw.crypto.hmac.
---@param algorithm "RS256"|"RS384"|"RS512"|"PS256"|"PS384"|"PS512"|"ES256"|"ES384"|"ES512"|"EdDSA" of RFC 7518: RS is RSA PKCS #1 v1.5, PS is RSA-PSS, ES is ECDSA, EdDSA is Ed25519; the number is the SHA-2 digest
---@param private_key string PEM: PRIVATE KEY, RSA PRIVATE KEY (2048 bits and more) or EC PRIVATE KEY, without a passphrase; a wrong one raises
---@param data string
---@return string signature bytes, not text
function gw.crypto.sign(algorithm, private_key, data) end

---Tells whether a signature was made with the private key that belongs to a public one. One of ES may be the pair of numbers of RFC 7518 section 3.4 or ASN.1, as openssl writes it.
---@param algorithm "RS256"|"RS384"|"RS512"|"PS256"|"PS384"|"PS512"|"ES256"|"ES384"|"ES512"|"EdDSA" of RFC 7518: RS is RSA PKCS #1 v1.5, PS is RSA-PSS, ES is ECDSA, EdDSA is Ed25519; the number is the SHA-2 digest
---@param public_key string PEM: PUBLIC KEY, RSA PUBLIC KEY (2048 bits and more) or CERTIFICATE; a wrong one raises
---@param data string
---@param signature string bytes, not text
---@return boolean holds
function gw.crypto.verify(algorithm, public_key, data, signature) end

-- Regular expressions whose time is bounded.
gw.re = {}

---Tells whether a text has a part that fits a regular expression, and gives its groups.
---@param text string
---@param pattern string RE2 syntax; a wrong one raises
---@return table? groups the groups by number, those with names by name too, false for one that took no part; [0] is the whole part; nil when nothing fits
function gw.re.match(text, pattern) end

---Tells whether a text has a part that fits a regular expression.
---@param text string
---@param pattern string RE2 syntax; a wrong one raises
---@return boolean fits
function gw.re.test(text, pattern) end

---Gives the places of the first and the last byte of the first part that fits; what fits nothing has last = first - 1.
---@param text string
---@param pattern string RE2 syntax; a wrong one raises
---@return integer? first from 1; nil when nothing fits
---@return integer? last
function gw.re.find(text, pattern) end

---Walks all parts that fit, which do not overlap: `for groups in gw.re.gmatch(text, pattern) do`.
---@param text string
---@param pattern string RE2 syntax; a wrong one raises
---@return fun(): table? next gives the groups by number, those with names by name too, false for one that took no part; [0] is the whole part of each part, then nil
function gw.re.gmatch(text, pattern) end

---Cuts a text at every part that fits.
---@param text string
---@param pattern string RE2 syntax; a wrong one raises
---@param most? integer pieces at most, the last of which is uncut
---@return string[] pieces
function gw.re.split(text, pattern, most) end

---Replaces every part that fits. In a text `$1` and `${name}` stand for its groups and `$$` for a dollar; a function gets the groups and gives a text, or nothing to leave the part as it is.
---@param text string
---@param pattern string RE2 syntax; a wrong one raises
---@param by string|fun(groups: table): string?
---@param most? integer parts at most
---@return string text
---@return integer replaced how many parts
function gw.re.replace(text, pattern, by, most) end

-- Patterns of paths.
gw.path = {}

---Tells whether a path fits a pattern or one of a list: exact segments, `*` for any one, `**` at the end for any number, also none. A segment's ;parameters are not looked at, and a slash at the end counts, as in the route table.
---@param patterns string|string[]
---@param path string such as req.path
---@return boolean fits
function gw.path.match(patterns, path) end

---Gives what the `{name}` segments of a pattern stand for in a path, as they stand there; nil when the path does not fit. Of a list the first pattern that fits counts.
---@param patterns string|string[] such as `/users/{id}/**`
---@param path string such as req.path
---@return table<string, string>? segments
function gw.path.capture(patterns, path) end

-- Addresses and networks.
gw.ip = {}

---Tells whether an address lies in a network or one of a list; an address alone is a network of one. What is no network raises. For long lists make a gw.ip.set.
---@param networks string|string[]|gw.IPSet such as `10.0.0.0/8`
---@param address string such as req.client_ip
---@return boolean lies false too for what is no address
function gw.ip.match(networks, address) end

---Makes a set of networks, whose `:has(address)` costs the same for ten and for ten thousand. Of a text, such as gw.file.read gives, each line is a network, and what follows a `#` is not read. What is no network raises. `#set` is the number of ranges it came to.
---@param networks string|string[] such as `10.0.0.0/8`; an address alone is a network of one
---@return gw.IPSet set read-only; it may be kept
function gw.ip.set(networks) end

---Reads an address and gives its canonical text (RFC 5952), its version and what kind of address it is. One of version 4 within version 6 is one of version 4.
---@param text string
---@return string? address without a zone
---@return 4|6|string version or why it is no address
---@return "public"|"private"|"loopback"|"link_local"|"multicast"|"unspecified" kind
function gw.ip.parse(text) end

---Tells whether a text is an address, of version 4 or 6.
---@param text string
---@return boolean valid
function gw.ip.valid(text) end

-- Parts of URLs and their encoding.
gw.url = {}

---Percent-encodes a text so that it may stand anywhere in a URL; a space is `%20`.
---@param text string
---@return string encoded
function gw.url.encode(text) end

---Decodes percent-encoding and `+`; what cannot be decoded is given as it is.
---@param text string
---@return string decoded
function gw.url.decode(text) end

---Writes a table as a query: names in the order in which they were set, values encoded, a list as several pairs.
---@param parameters table<string, string|number|string[]>
---@return string query without the question mark
function gw.url.query(parameters) end

---Takes a URL apart (RFC 3986). Nothing is decoded, so that gw.url.build puts it together again. A port that is no number, a host that cannot be one, control characters and spaces are refused.
---@param url string absolute, or a path with a query
---@return gw.URL? parts
---@return string? err why not
function gw.url.parse(url) end

---Puts a URL together of what gw.url.parse gives. The query may be a table, as in gw.url.query. What may not stand in a part raises or is percent-encoded; what is encoded stays.
---@param parts table scheme, user, host, port, path, query, fragment: what is nil is left out
---@return string url
function gw.url.build(parts) end

---Reads a query, or a form that was sent as application/x-www-form-urlencoded: split at `&` only, names and values decoded; a pair that cannot be decoded is read as it stands.
---@param query string without a question mark
---@return table<string, string> first the first value of each name
---@return table<string, string[]> all all values of each name, in order
function gw.url.parse_query(query) end

-- Values of Set-Cookie.
gw.cookie = {}

---Writes a value for Set-Cookie. Unless options say otherwise it is `Path=/; HttpOnly; SameSite=Lax`; `secure = true` adds Secure, and `false` leaves an attribute out. A name or value that no cookie may have raises: encode it, with gw.url.encode or gw.crypto.base64url_encode.
---@param name string
---@param value string
---@param options? table path, domain, max_age (seconds), expires (text), secure, http_only, same_site (`Strict`, `Lax`, `None`), partitioned, other (text)
---@return string line
function gw.cookie.format(name, value, options) end

---Reads the value of a Cookie header, as req.cookies does.
---@param line string
---@return table<string, string> cookies the first value of each name
function gw.cookie.parse(line) end

---Reads a value of Set-Cookie. gw.cookie.format with what it gives writes the same cookie again: change the options between, to mend what an upstream sets.
---@param line string such as one of res.headers:all("Set-Cookie")
---@return string? name
---@return string value or why it is none
---@return table options as gw.cookie.format wants them; what the line does not say is false
function gw.cookie.parse_set(line) end

-- Moments and their texts.
gw.time = {}

---Seconds since 1970 (UTC) with their fraction.
---@return number seconds
function gw.time.now() end

---Seconds of a clock that never goes back; only differences mean something.
---@return number seconds
function gw.time.monotonic() end

---Writes a moment as text, in UTC.
---@param seconds number
---@param form? "rfc3339"|"http"|string default rfc3339; http is the form of headers; else a layout of Go, such as `2006-01-02`
---@return string text
function gw.time.format(seconds, form) end

---Reads a moment's text; without a zone it is UTC.
---@param text string
---@param form? "rfc3339"|"http"|string as in gw.time.format
---@return number? seconds
---@return string? err why not
function gw.time.parse(text, form) end

---Runs a function by itself, without a request: once as soon as its generation is live, and then once each interval, never twice at once. Declared in the file it runs once for the script, in init once for each distinct settings. A reload ends the timers of the generation that it replaces; where script, libraries and settings stay as they are the timer keeps its rhythm. An error is logged and counted, and the timer goes on. A run has the budget of a function; what it waits for in a call to others ends with its generation.
---@param interval number seconds from one begin to the next, at least 0.1
---@param run fun()
function gw.time.every(interval, run) end

-- Names that nobody else has.
gw.uuid = {}

---Makes a random UUID (RFC 9562 section 5.4).
---@return string uuid
function gw.uuid.v4() end

---Makes a UUID that sorts by time (RFC 9562 section 5.7).
---@return string uuid
function gw.uuid.v7() end

-- Series of your own on /metrics.
gw.metric = {}

---Declares a counter: `:inc(label values...)` adds one, `:add(n, label values...)` adds n. Of each metric there are at most 1000 series; beyond, all count as `overflow`.
---@param name string lower case, digits and `_`; it is shown behind `moongate_script_`
---@param labels? string[] names of labels, at most eight
---@param help? string what it counts
---@return gw.Metric counter
function gw.metric.counter(name, labels, help) end

---Declares a gauge: `:set(n, label values...)` and `:add(n, label values...)`. Of each metric there are at most 1000 series; beyond, all count as `overflow`.
---@param name string lower case, digits and `_`; it is shown behind `moongate_script_`
---@param labels? string[] names of labels, at most eight
---@param help? string what it counts
---@return gw.Metric gauge
function gw.metric.gauge(name, labels, help) end

---Declares a histogram of seconds, from 0.5 ms to 10 s: `:observe(seconds, label values...)`. Of each metric there are at most 1000 series; beyond, all count as `overflow`.
---@param name string lower case, digits and `_`; it is shown behind `moongate_script_`
---@param labels? string[] names of labels, at most eight
---@param help? string what it counts
---@return gw.Metric histogram
function gw.metric.histogram(name, labels, help) end

---Reads an environment variable that `[scripts] env` lists, as it was when the configuration was read; another one raises.
---@param name string
---@return string? value nil when it is not set
function gw.env(name) end

-- Files of the scripts folder, at load.
gw.file = {}

---Reads a file of the scripts folder while the script is loaded: a template, a key. It is read once for a configuration.
---@param name string relative to the scripts folder
---@return string? text
---@return string? err why not
function gw.file.read(name) end
