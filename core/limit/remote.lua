-- Decides takes from one or several limiters of one key, atomically, by the server's clock.
--
-- KEYS[i] is the state of limiter i; ARGV[1] says what is done: "all" charges every limiter or none, "first" charges the first with
-- room, "peek" charges nothing, "back" gives a charge back; "lease" charges what there is up to cost, if it is as much as the last argument
-- says, and tells how much instead of 1. Six arguments for each limiter follow:
--   "b", c, p, burst, "", cost      a token bucket: a microsecond is c units, a token is p
--   "q", count, b0, b1, b2, cost    a quota: the borders of the present and the next window, in milliseconds of Unix time
-- The answer has four numbers for each limiter: granted (1 or 0), what remains, microseconds until cost fits (-1: never),
-- microseconds until it is as good as new. All numbers stay below 2^53, where a float is exact.
-- Redis runs one script at a time: what is slow here bounds all gateways together, so there are few calls, closures and tables.
--
-- A bucket is "AT REST C P": it is full again AT microseconds of Unix time and REST/C more. A quota is "END USED".

local call, fmod, format, match = redis.call, math.fmod, string.format, string.match
local time = call("TIME")
local now = time[1] * 1000000 + time[2]
local millis = now / 1000
millis = millis - millis % 1
local mode, count = ARGV[1], #KEYS
local need = tonumber(ARGV[2 + 6 * count])

-- whole divides and rounds down, or up.
local function whole(n, by, up)
  if by == 1 then
    return n
  end
  local rest = fmod(n, by)
  return (n - rest) / by + ((up and rest > 0) and 1 or 0)
end

-- bucket gives what a key owes in units of c; changed says that it is to be written in any case.
local function bucket(key, c, p, burst)
  local full, owed, changed = burst * p, 0, false
  local at, rest, oc, op = match(call("GET", key) or "", "^(%d+) (%d+) (%d+) (%d+)$")
  if at then
    owed = (at - now) * oc + rest
    if oc + 0 ~= c or op + 0 ~= p then -- the rate has changed: as many tokens are owed as before
      owed, changed = math.ceil(owed / op * p), true
    end
    if owed > full then -- a clock that was put back locks nobody out for longer than a whole burst
      owed, changed = full, true
    elseif owed < 0 then
      owed = 0
    end
  end
  return { c = c, p = p, limit = burst, full = full, owed = owed, changed = changed }
end

-- quota gives what a key has used of the present window, and when that stops.
local function quota(key, limit, b0, b1, b2)
  local size = math.max(b2 - b1, b1 - b0)
  local stop, used = match(call("GET", key) or "", "^(%d+) (%d+)$")
  local s = { limit = limit, used = 0 }
  if stop and stop + 0 > millis then
    s.stop, s.used = stop + 0, used + 0
    if s.stop - millis <= size then
      return s
    end
    s.changed = true -- the clock was put back: what was used is used, and the window is the one of now
  end
  s.stop = (b0 > millis and b0) or (b1 > millis and b1) or b2
  if s.stop <= millis then -- the gateway's clock is far behind
    s.stop = s.stop + (whole(millis - s.stop, size) + 1) * size
  elseif s.stop - millis > b2 - b0 then -- or far ahead
    s.stop = s.stop - whole(s.stop - millis - 1, size) * size
  end
  return s
end

-- decide says whether cost is granted, what remains, how long to wait for it, and when all is new.
local function decide(s, cost)
  if s.owed then
    local over = s.owed + cost * s.p - s.full
    return over <= 0, whole(s.full - s.owed, s.p), over > 0 and whole(over, s.c, true) or 0, whole(s.owed, s.c, true)
  end
  local left = s.stop * 1000 - now
  local granted = s.used + cost <= s.limit
  return granted, math.max(0, s.limit - s.used), granted and 0 or left, left
end

local function write(key, s)
  if not s.owed then
    call("SET", key, format("%d %d", s.stop, s.used), "PX", s.stop - millis)
  elseif s.owed == 0 then
    call("DEL", key)
  else
    local rest = s.c == 1 and 0 or fmod(s.owed, s.c)
    local micros = (s.owed - rest) / s.c
    call("SET", key, format("%d %d %d %d", now + micros, rest, s.c, s.p), "PX", whole(micros, 1000, true) + 1)
  end
end

local answer, states, all, charged = {}, {}, true, false
for i = 1, count do
  local base, key = 6 * i - 4, KEYS[i]
  local a, b, c, cost = ARGV[base + 1] + 0, ARGV[base + 2] + 0, ARGV[base + 3] + 0, ARGV[base + 5] + 0
  local s
  if ARGV[base] == "b" then
    s = bucket(key, a, b, c)
  else
    s = quota(key, a, b, c, ARGV[base + 4] + 0)
  end
  if need then
    local _, there = decide(s, 0)
    cost = math.max(need, math.min(cost, there))
  end
  local granted, remaining, wait, reset = decide(s, cost)
  if cost > s.limit then
    granted, wait = false, -1
  end
  all = all and granted
  s.cost, s.granted, states[i] = cost, granted, s
  local at = 4 * i
  answer[at - 3], answer[at - 2], answer[at - 1], answer[at] = granted and (need and cost or 1) or 0, remaining, wait, reset
end

for i = 1, count do
  local s = states[i]
  local cost = s.cost
  local charge = mode == "back" or (mode == "all" or mode == "lease") and all or mode == "first" and s.granted and not charged
  if charge and cost > 0 then
    if s.owed then
      s.owed = math.max(0, s.owed + (mode == "back" and -cost or cost) * s.p)
    else
      s.used = math.max(0, s.used + (mode == "back" and -cost or cost))
    end
    write(KEYS[i], s)
    local _, remaining, _, reset = decide(s, 0)
    answer[4 * i - 2], answer[4 * i] = remaining, reset
  elseif s.changed then -- from now on it fills at the new rate
    write(KEYS[i], s)
  end
  charged = charged or charge
end
return answer
