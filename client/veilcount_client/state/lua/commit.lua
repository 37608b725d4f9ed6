#!lua
local result = remembered_result()
if result then return result end

-- All of it is decided first, and only then written.
local names, last = {}, 3 + tonumber(ARGV[3])
for i = 4, last do names[#names + 1] = ARGV[i] end

local ids, fresh = {}, redis.call('HLEN', prefix .. 'id')
local function id(i)
  if not ids[i] then
    local known = id_of(names[i])
    if known == 0 then
      fresh = fresh + 1
      known = fresh
    end
    ids[i] = known
  end
  return ids[i]
end

local people, coverage, ledgers, stored, frozen, outcomes = {}, {}, {}, {}, {}, {}

local function person(key)
  if people[key] == nil then people[key] = person_of(key) or false end
  return people[key]
end

local function coverage_of(key)
  coverage[key] = coverage[key] or get('coverage:', key) or ''
  return coverage[key]
end

local function ledger(key)
  ledgers[key] = ledgers[key] or get('ledger:', key) or ''
  return ledgers[key]
end

local function slot(used, series, period, answer)
  local at, last_period, answers, _ = find(used, 6, series), -1, 0
  if at then _, last_period, answers = struct.unpack('>HHH', used, at) end
  -- Periods only move forward: a clock set back finds its slots spent.
  if period > last_period then return answer == 0 end
  return period == last_period and answer == answers
end

local function charged(key, lineage, cost, first_day, end_day, day_cap, life_cap)
  if cost == 0 then return true end -- of a forgone answer: nothing is revealed
  local entries = ledger(key)
  local at, life, last_first, last_end, spent, _ =
    find(entries, 22, lineage), 0, first_day, end_day, 0
  if at then _, life, last_first, last_end, spent = struct.unpack('>HI6I4I4I6', entries, at) end
  if first_day >= last_end then
    spent = 0
  elseif first_day ~= last_first or end_day ~= last_end then
    return false -- a part of these days was paid for as another unit's
  end
  life, spent = life + cost, spent + cost
  if life > life_cap or spent > day_cap then return false end
  local entry = struct.pack('>HI6I4I4I6', lineage, life, first_day, end_day, spent)
  ledgers[key] = replaced(entries, 22, lineage, entry)
  return true
end

local function outcome(packed)
  local key, series, lineage, period, answer, cost, first_day, end_day, day_cap, life_cap,
    earliest, send_at, expires, free, has_report, of, changes, held_due, round, old_size, new_size,
    at = struct.unpack('>c16HHHHI8I4I4I8I8dddBBHBdI4HH', packed)
  local old = string.sub(packed, at, at + old_size - 1)
  local new = string.sub(packed, at + old_size, at + old_size + new_size - 1)
  local who = person(key)
  if not agrees(who, coverage_of(key), id_of(names[series]), round) then return 'n' end
  if free == 0 then
    local name = names[series]
    series = id(series)
    if not slot(who.used, series, period, answer) then return 'f' end
    local held = redis.call('HGET', prefix .. 'held:' .. key, name) or ''
    if changes == 1 and held ~= old then return 'f' end
    if not charged(key, id(lineage), cost, first_day, end_day, day_cap, life_cap) then
      return 'o'
    end
    frozen[#frozen + 1] = {key, name, period, new, held_due}
    who.used = replaced(who.used, 6, series, struct.pack('>HHH', series, period, answer + 1))
    who.changed = true
  end
  if has_report == 1 then
    local report = struct.pack('>H', id(of)) .. string.sub(packed, at + old_size + new_size)
    stored[#stored + 1] = {key, report, earliest, send_at, expires}
  end
  return 's'
end

for i = last + 1, #ARGV do outcomes[#outcomes + 1] = outcome(ARGV[i]) end

local known = {}
for i in pairs(ids) do known[#known + 1] = i end
table.sort(known, function(a, b) return ids[a] < ids[b] end)
for _, i in ipairs(known) do new_id(names[i]) end
for key, who in pairs(people) do
  if who and who.changed then put_person(key, who) end
end
for key, entries in pairs(ledgers) do put('ledger:', key, entries) end
for _, each in ipairs(frozen) do
  local key, series, period, new, due = unpack(each)
  local held = redis.call('HGET', prefix .. 'held:' .. key, series)
  if new ~= '' then
    put_held(key, series, new, due)
  elseif held and struct.unpack('>H', held) <= period then
    drop_held(key, series)
  end
end

local number, bytes = 0, 0
if #stored > 0 then
  number = redis.call('HINCRBY', prefix .. 'figures', 'number', #stored) - #stored
end
for _, each in ipairs(stored) do
  local key, report, earliest, send_at, expires = unpack(each)
  number, bytes = number + 1, bytes + #report - HEAD
  redis.call('ZADD', prefix .. 'out', number, member(number) .. key .. report)
  redis.call('ZADD', prefix .. 'due', send_at, member(number))
  redis.call('ZADD', prefix .. 'early', earliest, member(number))
  redis.call('ZADD', prefix .. 'late', expires, member(number))
  redis.call('SADD', prefix .. 'waiting:' .. key, number)
end
redis.call('HINCRBY', prefix .. 'figures', 'bytes', bytes)
return remember_result(table.concat(outcomes))
