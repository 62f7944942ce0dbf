-- Decides takes from one or several limiters of one key, atomically, by the server's clock.
--
-- KEYS[i] is the state of limiter i; ARGV[1] says what is done: "all" charges every limiter or none, "first" charges the first with
-- room, "peek" charges nothing, "back" gives a charge back; "lease" charges what there is up to cost, if it is as much as the last argument
-- says, and tells how much instead of 1. Six arguments for each limiter follow:
--   "b", c, p, burst, "", cost      a token bucket: a microsecond is c units, a token is p
--   "q", count, b0, b1, b2, cost    a quota: the borders of the present and the next window, in milliseconds of Unix time
-- The answer has four numbers for each limiter: granted (1 or 0), what remains, microseconds until cost fits (-1: never),
-- microseconds until it is as good as new. All numbers stay below 2^53, where a float is exact.
--
-- A bucket is "AT REST C P": it is full again AT microseconds of Unix time and REST/C more. A quota is "END USED".

local time = redis.call("TIME")
local now = time[1] * 1000000 + time[2]
local mode = ARGV[1]
local need = tonumber(ARGV[2 + 6 * #KEYS])
local answer, states, charged = {}, {}, false

-- whole divides and rounds down, or up.
local function whole(n, by, up)
  local rest = math.fmod(n, by)
  return (n - rest) / by + ((up and rest > 0) and 1 or 0)
end

-- bucket gives what key owes in units of c, and how that is written.
local bucket = {}

function bucket.read(key, c, p, burst)
  local s = { c = c, p = p, limit = burst, full = burst * p, owed = 0 }
  local at, rest, oc, op = string.match(redis.call("GET", key) or "", "^(%d+) (%d+) (%d+) (%d+)$")
  if at then
    s.owed = (at - now) * oc + rest
    if tonumber(oc) ~= c or tonumber(op) ~= p then -- the rate has changed: as many tokens are owed as before
      s.owed, s.changed = math.ceil(s.owed / op * p), true
    end
  end
  if s.owed > s.full then -- a clock that was put back locks nobody out for longer than a whole burst
    s.owed, s.changed = s.full, true
  end
  s.owed = math.max(0, s.owed)
  return s
end

function bucket.decide(s, cost)
  local over = s.owed + cost * s.p - s.full
  return over <= 0, whole(s.full - s.owed, s.p), over > 0 and whole(over, s.c, true) or 0, whole(s.owed, s.c, true)
end

function bucket.charge(s, cost)
  s.owed = math.max(0, s.owed + cost * s.p)
end

function bucket.write(key, s)
  if s.owed == 0 then
    redis.call("DEL", key)
    return
  end
  local rest = math.fmod(s.owed, s.c)
  local micros = (s.owed - rest) / s.c
  redis.call("SET", key, string.format("%.0f %.0f %.0f %.0f", now + micros, rest, s.c, s.p), "PX", whole(micros, 1000, true) + 1)
end

local quota = {}

function quota.read(key, count, b0, b1, b2)
  local s = { limit = count, used = 0 }
  local millis = whole(now, 1000)
  local size = math.max(b2 - b1, b1 - b0)
  local stop, used = string.match(redis.call("GET", key) or "", "^(%d+) (%d+)$")
  if stop and tonumber(stop) > millis then
    s.stop, s.used = tonumber(stop), tonumber(used)
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

function quota.decide(s, cost)
  local left = s.stop * 1000 - now
  local granted = s.used + cost <= s.limit
  return granted, math.max(0, s.limit - s.used), granted and 0 or left, left
end

function quota.charge(s, cost)
  s.used = math.max(0, s.used + cost)
end

function quota.write(key, s)
  redis.call("SET", key, string.format("%.0f %.0f", s.stop, s.used), "PX", s.stop - whole(now, 1000))
end

local kinds = { b = bucket, q = quota }
local all = true

for i, key in ipairs(KEYS) do
  local base = 2 + (i - 1) * 6
  local kind, cost = kinds[ARGV[base]], tonumber(ARGV[base + 5])
  local s = kind.read(key, tonumber(ARGV[base + 1]), tonumber(ARGV[base + 2]), tonumber(ARGV[base + 3]), tonumber(ARGV[base + 4]))
  if need then
    local _, there = kind.decide(s, 0)
    cost = math.max(need, math.min(cost, there))
  end
  local granted, remaining, wait, reset = kind.decide(s, cost)
  if cost > s.limit then
    granted, wait = false, -1
  end
  all = all and granted
  states[i] = { kind = kind, s = s, cost = cost, granted = granted }
  answer[#answer + 1] = granted and (need and cost or 1) or 0
  answer[#answer + 1] = remaining
  answer[#answer + 1] = wait
  answer[#answer + 1] = reset
end

for i, key in ipairs(KEYS) do
  local state = states[i]
  local cost = state.cost
  local charge = mode == "back" or (mode == "all" or mode == "lease") and all or mode == "first" and state.granted and not charged
  if charge and cost > 0 then
    if mode == "back" then
      cost = -cost
    end
    state.kind.charge(state.s, cost)
    state.kind.write(key, state.s)
    local _, remaining, _, reset = state.kind.decide(state.s, 0)
    answer[i * 4 - 2], answer[i * 4] = remaining, reset
  elseif state.s.changed then -- from now on it fills at the new rate
    state.kind.write(key, state.s)
  end
  charged = charged or charge
end
return answer
