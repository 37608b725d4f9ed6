#!lua flags=no-writes
local keys = {}
for bucket = tonumber(ARGV[2]), tonumber(ARGV[3]) do
  local first = string.char(bit.rshift(bucket, 4))
  local entries = redis.call('HGETALL', prefix .. 'person:' .. bucket)
  for i = 1, #entries, 2 do
    if string.byte(entries[i + 1]) == 1 then keys[#keys + 1] = first .. entries[i] end
  end
end
return keys
