#!lua flags=allow-oom
local now, reports, size, most =
  tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local old = redis.call('ZRANGEBYSCORE', prefix .. 'late', '-inf', now, 'LIMIT', 0, most)
for _, found in ipairs(old) do
  local number = struct.unpack('>I6', found)
  local _, _, tries = turn_of(number)
  local sealed = struct.unpack('>H', entry_of(number), HEADS - 1)
  finish(number, sealed > 0 and tries > 0 and 'unanswered' or 'aged')
end
local left = most - #old
while left > 0 and (
  redis.call('ZCARD', prefix .. 'out') > reports
  or tonumber(redis.call('HGET', prefix .. 'figures', 'bytes') or 0) > size
) do
  local entry = redis.call('ZRANGE', prefix .. 'out', 0, 0)[1]
  finish(struct.unpack('>I6', entry), 'evicted')
  left = left - 1
end
put_pasts()
return left
