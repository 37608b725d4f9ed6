#!lua flags=no-writes
local rows = {}
for _, entry in ipairs(past_of(ARGV[2])) do
  local number, status, _, series = struct.unpack('>I6HHH', entry[2])
  rows[#rows + 1] = {number, name_of(status), name_of(series), string.sub(entry[2], 13)}
end
for _, number in ipairs(redis.call('SMEMBERS', prefix .. 'waiting:' .. ARGV[2])) do
  local entry = entry_of(number)
  local series = name_of(struct.unpack('>H', entry, 23))
  rows[#rows + 1] = {tonumber(number), 'waiting', series, string.sub(entry, 25)}
end
return rows
