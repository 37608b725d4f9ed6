#!lua flags=allow-oom
for _, found in ipairs(redis.call('ZRANGE', prefix .. 'held_due', 0, -1)) do
  if string.sub(found, 17) == ARGV[2] then drop_held(string.sub(found, 1, 16), ARGV[2]) end
end
if ARGV[3] == '0' then return end
local id = id_of(ARGV[2])
for _, entry in ipairs(redis.call('ZRANGE', prefix .. 'out', 0, -1)) do
  if struct.unpack('>H', entry, 23) == id then take_off(struct.unpack('>I6', entry)) end
end
