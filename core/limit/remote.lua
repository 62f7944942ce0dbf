-- Decides takes from token buckets and quotas, as many as wait at the same time, atomically, by the server's clock.
--
-- KEYS[i] is the state of one key of one limiter. ARGV has three parts, one after the other:
--   how many terms follow, and five for each: "b", c, p, burst, 0 of a bucket, where a microsecond is c units and a token is p;
--     "q", count, b0, b1, b2 of a quota, with the borders of the present and the next window in milliseconds of Unix time
--   for each key the number of its terms
--   questions, each decided after those before it: what is done, how many keys it is about, for each of these its number and the cost, and
--     the least that a lease must bring, or 0
-- "all" charges every key or none, "first" the first with room, "peek" none, "back" gives a charge back, "lease" charges what there is up to
-- the cost, if it is as much as it must bring, and tells how much instead of 1.
-- The answer has four numbers for each key of each question: granted (1 or 0), what remains, microseconds until cost fits (-1: never),
-- microseconds until it is as good as new. All numbers stay below 2^53, where a float is exact.
-- Redis runs one script at a time: what is slow here bounds all gateways together, so there are few calls, functions and tables, and a key
-- is read and written once however many ask about it.
--
-- A bucket is "AT REST C P": it is full again AT microseconds of Unix time and REST/C more. A quota is "END USED".

local call, format, match = redis.call, string.format, string.match
local time = call("TIME")
local now = time[1] * 1000000 + time[2]
local millis = (now - now % 1000) / 1000

-- up divides and rounds up.
local function up(n, by)
  local rest = n % by
  if rest > 0 then
    n = n + by - rest
  end
  return n / by
end

-- A quota counts in units of one, as a bucket of p = 1 would.
local terms, at = {}, 2
for j = 1, ARGV[1] + 0 do
  local a, b, c = ARGV[at + 1] + 0, ARGV[at + 2] + 0, ARGV[at + 3] + 0
  if ARGV[at] == "b" then
    terms[j] = { c = a, p = b, full = b * c, limit = c }
  else
    terms[j] = { quota = true, p = 1, full = a, limit = a, b0 = b, b1 = c, b2 = ARGV[at + 4] + 0 }
  end
  at = at + 5
end

-- bucket gives what a key owes in units; changed says that it is to be written in any case.
local function bucket(text, t)
  local full, rest, c, p = match(text, "^(%d+) (%d+) (%d+) (%d+)$")
  if not full then
    return 0, false
  end
  local owed, changed = (full - now) * c + rest, false
  if c + 0 ~= t.c or p + 0 ~= t.p then -- the rate has changed: as many tokens are owed as before
    owed, changed = math.ceil(owed / p * t.p), true
  end
  if owed > t.full then -- a clock that was put back locks nobody out for longer than a whole burst
    return t.full, true
  elseif owed < 0 then
    return 0, changed
  end
  return owed, changed
end

-- quota gives what a key has used of the present window, whether that is to be written in any case, and when the window stops.
local function quota(text, t)
  local b0, b1, b2 = t.b0, t.b1, t.b2
  local size, owed, changed = math.max(b2 - b1, b1 - b0), 0, false
  local stop, used = match(text, "^(%d+) (%d+)$")
  if stop and stop + 0 > millis then
    stop, owed = stop + 0, used + 0
    if stop - millis <= size then
      return owed, false, stop
    end
    changed = true -- the clock was put back: what was used is used, and the window is the one of now
  end
  stop = (b0 > millis and b0) or (b1 > millis and b1) or b2
  if stop <= millis then -- the gateway's clock is far behind
    stop = stop + (math.floor((millis - stop) / size) + 1) * size
  elseif stop - millis > b2 - b0 then -- or far ahead
    stop = stop - math.floor((stop - millis - 1) / size) * size
  end
  return owed, changed, stop
end

local texts = call("MGET", unpack(KEYS))
local of, owes, changed, stops = {}, {}, {}, {} -- terms, units owed, whether to write, end of a quota's window: by number of the key
for i = 1, #KEYS do
  local t = terms[ARGV[at] + 0]
  at = at + 1
  of[i] = t
  if t.quota then
    owes[i], changed[i], stops[i] = quota(texts[i] or "", t)
  elseif texts[i] then
    owes[i], changed[i] = bucket(texts[i], t)
  else
    owes[i] = 0
  end
end

-- left is what remains, in whole tokens.
local function left(i)
  local t = of[i]
  local units = t.full - owes[i]
  return units > 0 and (units - units % t.p) / t.p or 0
end

-- wait is how long until cost fits.
local function wait(i, cost)
  local t, stop = of[i], stops[i]
  local over = owes[i] + cost * t.p - t.full
  if over <= 0 then
    return 0
  elseif cost > t.limit then
    return -1
  end
  return stop and stop * 1000 - now or up(over, t.c)
end

local function charge(i, cost)
  owes[i], changed[i] = math.max(0, owes[i] + cost * of[i].p), true
end

-- fits tells whether every key of a question has room.
local function fits(first, count)
  for k = first, first + 2 * count - 2, 2 do
    if wait(ARGV[k] + 0, ARGV[k + 1] + 0) ~= 0 then
      return false
    end
  end
  return true
end

local answer, n, last = {}, 0, #ARGV
while at < last do
  local mode, count, first = ARGV[at], ARGV[at + 1] + 0, at + 2
  at = first + 2 * count + 1
  local open = mode == "first" or mode == "lease" or mode == "all" and (count == 1 or fits(first, count))
  for k = first, at - 3, 2 do
    local i, cost, got = ARGV[k] + 0, ARGV[k + 1] + 0, 1
    if mode == "lease" then
      cost = math.max(ARGV[at - 1] + 0, math.min(cost, left(i)))
      got = cost
    end
    local pause = wait(i, cost)
    if pause ~= 0 then
      got = 0
    elseif open then
      if cost > 0 then
        charge(i, cost)
      end
      open = mode ~= "first"
    end
    if mode == "back" and cost > 0 then
      charge(i, -cost)
    end
    local stop = stops[i]
    answer[n + 1], answer[n + 2], answer[n + 3], answer[n + 4] = got, left(i), pause, stop and stop * 1000 - now or up(owes[i], of[i].c)
    n = n + 4
  end
end

for i = 1, #KEYS do
  if changed[i] then
    local key, owed, stop, t = KEYS[i], owes[i], stops[i], of[i]
    if stop then
      call("SET", key, format("%d %d", stop, owed), "PX", format("%d", stop - millis))
    elseif owed == 0 then
      call("DEL", key)
    else
      local rest = owed % t.c
      local micros = (owed - rest) / t.c
      call("SET", key, format("%d %d %d %d", now + micros, rest, t.c, t.p), "PX", format("%d", up(micros, 1000) + 1))
    end
  end
end
return answer
