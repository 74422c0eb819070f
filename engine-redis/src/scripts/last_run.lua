-- Returns the last run of a job, as it was stored; an empty text if there is none. Changes nothing.

return redis.call('HGET', KEYS[1], 'run') or ''
