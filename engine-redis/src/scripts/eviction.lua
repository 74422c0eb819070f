-- Returns by which policy the server throws away keys when its memory is full; nothing if it keeps them, if the client accepts that, or if
-- its user may not ask. Costs more than all else in a script: asked only where there is no lock yet, or none any more.
local function eviction(client)
  if client == 'accepts' then return nil end
  local said = redis.pcall('INFO', 'memory')
  if type(said) ~= 'string' or string.find(said, '\nmaxmemory:0\r', 1, true) then return nil end
  local policy = string.match(said, '\nmaxmemory_policy:(%S+)')
  return policy ~= 'noeviction' and policy or nil
end
