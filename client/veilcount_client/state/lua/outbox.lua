-- What takes reports off the outbox.

-- An entry of `out`: number, person, series, report.
local function take_off(number)
  local entry = entry_of(number)
  if not entry then return nil end
  local person = string.sub(entry, 7, 22)
  redis.call('ZREM', prefix .. 'out', entry)
  redis.call('ZREM', prefix .. 'due', member(number))
  redis.call('ZREM', prefix .. 'early', member(number))
  redis.call('ZREM', prefix .. 'late', member(number))
  redis.call('SREM', prefix .. 'waiting:' .. person, number)
  redis.call('HINCRBY', prefix .. 'figures', 'bytes', HEADS - #entry)
  redis.call('HDEL', prefix .. 'turn', number)
  return person, string.sub(entry, 23)
end

local function past_of(key)
  local packed, entries, at = get('past:', key) or '', {}, 1
  while at <= #packed do
    local number, _, length = struct.unpack('>I6HH', packed, at)
    entries[#entries + 1] = {number, string.sub(packed, at, at + 9 + length)}
    at = at + 10 + length
  end
  return entries
end

-- The persons' finished reports, read once and written once.
local pasts = {}

local function finish(number, status)
  local person, report = take_off(number)
  if not person then return end
  pasts[person] = pasts[person] or past_of(person)
  if string.byte(report, 3) == 1 then -- a true value is wiped
    report = string.sub(report, 1, HEAD) .. string.char(0)
  end
  local sealed = struct.unpack('>H', report, HEAD - 1)
  if sealed > 0 then
    report = string.sub(report, 1, HEAD - 2) .. struct.pack('>H', 0)
      .. string.sub(report, HEAD + 1 + sealed)
  end
  local head = struct.pack('>I6HH', number, new_id(status), #report)
  table.insert(pasts[person], {tonumber(number), head .. report})
  if status ~= 'delivered' then
    local series = name_of(struct.unpack('>H', report))
    redis.call('HINCRBY', prefix .. 'loss', status .. ' ' .. series, 1)
  end
end

local function put_pasts()
  for person, entries in pairs(pasts) do
    table.sort(entries, function(a, b) return a[1] < b[1] end)
    local kept = {}
    for i = math.max(1, #entries - KEPT + 1), #entries do
      kept[#kept + 1] = entries[i][2]
    end
    put('past:', person, table.concat(kept))
  end
end
