#!lua flags=allow-oom
local now, reports, size, most =
  tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local function drop(found, loss)
  local number = struct.unpack('>I6', found)
  local _, _, tries = turn_of(number)
  finish(number, sealed_bytes(number) > 0 and tries > 0 and 'unanswered' or loss)
end
local old = redis.call('ZRANGEBYSCORE', prefix .. 'late', '-inf', now, 'LIMIT', 0, most)
for _, found in ipairs(old) do drop(found, 'aged') end
local left = most - #old
while left > 0 and (
  redis.call('ZCARD', prefix .. 'out') > reports
  or tonumber(redis.call('HGET', prefix .. 'figures', 'bytes') or 0) > size
) do
  drop(redis.call('ZRANGE', prefix .. 'due', 0, 0)[1], 'evicted')
  left = left - 1
end
put_pasts()
return left
