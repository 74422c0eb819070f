-- Returns the whole hash as it is. Changes nothing.
--
-- Out: {now, fields and values in turn}

return { whole(now), redis.call('HGETALL', key) }
