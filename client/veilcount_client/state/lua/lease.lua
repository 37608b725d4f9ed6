#!lua flags=allow-oom
local now, lease_end, most, hurry =
  tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5] == '1'

-- `due` knows of leases, `early` does not: in a hurry those that are on their way are passed over.
local index, at, rows = hurry and 'early' or 'due', 0, {}
local page
local taken = {}
repeat
  page = redis.call('ZRANGEBYSCORE', prefix .. index, '-inf', now, 'LIMIT', at, most)
  for _, found in ipairs(page) do
    local number = struct.unpack('>I6', found)
    local leased, send_at, tries = turn_of(number)
    if leased <= now and #taken < most then
      taken[#taken + 1] = {number, send_at, math.min(tries + 1, 65535)}
    end
  end
  at = at + #page
until #page < most or #taken >= most

for _, each in ipairs(taken) do
  local number, send_at, tries = unpack(each)
  put_turn(number, lease_end, send_at, tries)
  local entry = entry_of(number)
  rows[#rows + 1] = {
    number, string.sub(entry, 7, 22), struct.pack('>dH', send_at, tries),
    name_of(struct.unpack('>H', entry, 23)), string.sub(entry, 25),
  }
end
return rows
