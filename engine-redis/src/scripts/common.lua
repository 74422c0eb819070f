-- What the quick ways and the ways that follow them share.

local function whole(value) return string.format('%.0f', value) end

local function words(text)
  local found = {}
  for word in string.gmatch(text, '%S+') do found[#found + 1] = word end
  return found
end

-- Returns the text with another word in this place.
local function with_word(text, place, word)
  local all = words(text)
  all[place] = word
  return table.concat(all, ' ')
end

-- Returns the server's time in milliseconds and in microseconds since 1970.
local function clock()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000), time[1] * 1000000 + time[2]
end

-- Returns the value of `o:<id>`.
local function who_is(owner, channel, client) return owner .. ' ' .. channel .. ' ' .. client end

-- Returns the message to a waiter that listens to this channel; nothing if it would not be heard.
local function message(channel, text)
  local sharded = string.find(channel, '{', 1, true)
  channel = 'ylock:' .. channel
  local listeners = redis.call('PUBSUB', sharded and 'SHARDNUMSUB' or 'NUMSUB', channel)[2]
  return tonumber(listeners) > 0 and { sharded and 'SPUBLISH' or 'PUBLISH', channel, text } or nil
end

-- The hash outlives every holder and waiter in it by this, and by half of it at least, so that the last token is remembered and nothing
-- stays for ever.
local RETENTION = 60000

-- Levels of the queue: each has about a quarter of the waiters of the level below.
local LEVELS, SHARE = 12, 4

-- Returns on how many levels a waiter is. Its identity decides, because it is random. If the number decided, it could be that all
-- waiters of the higher levels leave and the others stay: of clients that come in turn, every fourth may be one that gives up.
local function height(id)
  local levels = 1
  while levels < LEVELS and (string.byte(id, levels) or 1) % SHARE == 0 do levels = levels + 1 end
  return levels
end
