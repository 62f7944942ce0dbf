-- Counts what is under way at once for one key, atomically, by the server's clock.
--
-- KEYS[1] is a sorted set: each take's member ("ID:COST") with the moment at which its lease ends, in milliseconds of Unix time; and "#" with
-- the sum of the costs, below zero, so that it is never among those that have ended. ARGV: what is done, the limit, the lease in milliseconds,
-- the cost asked for, and the members: "take" adds the one when there is room, or when it is there already, "peek" adds nothing, "keep"
-- prolongs leases, with those that were lost, "back" takes members away. The answer is granted (1 or 0), what remains, microseconds until a
-- try is worth while (-1: never), and 0.

local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local key, mode, limit, lease, cost = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local latest = string.format("%.0f", now + lease)
local sum = -(tonumber(redis.call("ZSCORE", key, "#") or 0))

local function cost_of(member)
  return tonumber(string.match(member, ":(%d+)$"))
end

local function put(member)
  if not redis.call("ZSCORE", key, member) then
    sum = sum + cost_of(member)
  end
  redis.call("ZADD", key, latest, member)
end

local function drop(member)
  if redis.call("ZREM", key, member) == 1 then
    sum = sum - cost_of(member)
  end
end

for _, member in ipairs(redis.call("ZRANGEBYSCORE", key, "(0", string.format("%.0f", now))) do
  drop(member)
end

-- A lease that ends later than one that is taken now was given by a clock that has been put back, or by another server's: it ends as that one.
for _, member in ipairs(redis.call("ZRANGEBYSCORE", key, "(" .. latest, "+inf")) do
  redis.call("ZADD", key, latest, member)
end

local granted = sum + cost <= limit
if mode == "take" then
  granted = granted or redis.call("ZSCORE", key, ARGV[5]) and true or false
  if granted then
    put(ARGV[5])
  end
elseif mode == "keep" then
  for i = 5, #ARGV do
    put(ARGV[i])
  end
elseif mode == "back" then
  for i = 5, #ARGV do
    drop(ARGV[i])
  end
end

if sum <= 0 then
  redis.call("DEL", key)
else
  redis.call("ZADD", key, string.format("%.0f", -sum), "#")
  redis.call("PEXPIRE", key, string.format("%.0f", lease + 1000))
end
local wait = 0
if not granted then
  wait = cost > limit and -1 or 1000000
end
return { granted and 1 or 0, math.max(limit - sum, 0), wait, 0 }
