#!lua flags=no-writes
local rows = {}
local due = redis.call('ZRANGEBYSCORE', prefix .. 'held_due', '-inf', ARGV[2], 'LIMIT', 0, ARGV[3])
for _, found in ipairs(due) do
  local key, series = string.sub(found, 1, 16), string.sub(found, 17)
  rows[#rows + 1] = {key, series, redis.call('HGET', prefix .. 'held:' .. key, series)}
end
return rows
