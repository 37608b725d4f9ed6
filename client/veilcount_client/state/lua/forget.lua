#!lua flags=allow-oom
local key = ARGV[2]
local function close(report)
  local id, _, _, _, _, pseudonym = struct.unpack('>HBHBHc16', report)
  redis.call('ZADD', prefix .. 'row_close', 'NX', 0, name_of(id) .. pseudonym)
end
for _, entry in ipairs(past_of(key)) do
  if string.byte(entry[2], 9) == 1 then close(string.sub(entry[2], 12)) end
end
for _, number in ipairs(redis.call('SMEMBERS', prefix .. 'waiting:' .. key)) do
  local _, report, leased = take_off(number)
  if leased then close(report) end
end
drop_all_held(key)
redis.call('DEL', prefix .. 'token:' .. key)
put('past:', key, '')
put('person:', key, '')
