#!lua flags=no-writes
local rows = {}
local beyond = tonumber(ARGV[3])
local function put_off(number, found)
  local turn = redis.call('HGET', prefix .. 'turn', number)
  if not turn then return false end
  local leased, send_at = struct.unpack('>ddH', turn)
  local earliest = tonumber(redis.call('ZSCORE', prefix .. 'early', found))
  return leased > beyond or send_at > earliest + PUT_OFF
end
local function see(first, last, every)
  local page = redis.call('ZRANGEBYSCORE', prefix .. 'due', first, last, 'LIMIT', 0, ARGV[4])
  for _, found in ipairs(page) do
    local number = struct.unpack('>I6', found)
    if every or put_off(number, found) then
      local expires = redis.call('ZSCORE', prefix .. 'late', found)
      rows[#rows + 1] = {number, expires, sealed_bytes(number)}
    end
  end
end
see('-inf', '(' .. ARGV[2], true)
see('(' .. ARGV[3], '+inf', false)
return rows
