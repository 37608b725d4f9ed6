"""The steps that Redis takes as one, in Lua.

Lua does not roll back. So a script reads and decides first, and writes only what cannot fail any
more; what would make Redis grow is refused by Redis itself, before the first line, when memory is
out. Each script sees the root's key (all others stand beside it, in one hash slot) and its digest:
a Redis that was emptied meanwhile takes nothing for a root it does not have.

Persons, ledgers and finished reports lie in hashes of some dozens of persons each, which Redis
keeps as one packed list up to 128 entries of at most 64 bytes [Redis, memory optimization]: hence
the binary records, the numbers instead of names, and the 4,096 buckets.

    person  consented, since, salt, covered series; last answered period and answers of each series
    ledger  of each lineage: life, day, spent that day
    past    of each finished report: its number, its status, whether it was leased, itself
    out     the waiting reports, each with its number as score; `due`, `early` (never before) and
            `late` (expires) order the same numbers; `turn` has what a lease or a new time changed
    held    of each person: the running values, by series; `held_due` orders all of them
    row_close  series and pseudonym of each row that is to be closed, by when
"""

from __future__ import annotations

from .interface import KEPT, KEY_BYTES, PUT_OFF, ROW_CLOSED
from .redis_codec import REPORT

BUCKETS = 4096
REMEMBERED = 60  # seconds for which a lost reply can be asked for again
HEAD = 2 + REPORT.size  # what stands before a report's message: its series, and the rest
HEADS = 6 + KEY_BYTES + HEAD  # and before that, its number and its person

#: What all scripts know. KEYS[1] is the root's, ARGV[1] its digest.
_COMMON = """
if redis.sha1hex(redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then
  return redis.error_reply('ANEW another root')
end

local space = string.sub(KEYS[1], 1, -5) -- without 'root'

local function place(kind, key)
  return space .. kind .. bit.rshift(struct.unpack('>H', key), 4), string.sub(key, 2)
end

local function get(kind, key)
  return redis.call('HGET', place(kind, key))
end

local function put(kind, key, value)
  local bucket, field = place(kind, key)
  if value == '' then
    redis.call('HDEL', bucket, field)
  else
    redis.call('HSET', bucket, field, value)
  end
end

-- Names are long and few: each gets a number, for good.
local function id_of(name)
  return tonumber(redis.call('HGET', space .. 'id', name) or 0)
end

local function new_id(name)
  local id = id_of(name)
  if id == 0 then
    id = redis.call('HLEN', space .. 'id') + 1
    redis.call('HSET', space .. 'id', name, id)
    redis.call('HSET', space .. 'name', id, name)
  end
  return id
end

local function name_of(id)
  return redis.call('HGET', space .. 'name', id)
end

-- Where the entry that begins with this id stands, in a list of entries of one width.
local function find(list, width, id)
  for at = 1, #list, width do
    if struct.unpack('>H', list, at) == id then return at end
  end
end

local function replaced(list, width, id, entry)
  local at = find(list, width, id) or #list + 1
  return string.sub(list, 1, at - 1) .. entry .. string.sub(list, at + width)
end

local function person_of(key)
  local packed = get('person:', key)
  if not packed then return nil end
  local consented, since, salt, covered, at = struct.unpack('>Bdc16H', packed)
  return {
    consented = consented, since = since, salt = salt,
    covered = string.sub(packed, at, at + 2 * covered - 1),
    used = string.sub(packed, at + 2 * covered),
  }
end

local function put_person(key, person)
  put('person:', key, struct.pack(
    '>Bdc16H', person.consented, person.since, person.salt, #person.covered / 2
  ) .. person.covered .. person.used)
end

-- In `due`, `early` and `late`: equals stand in the order of their numbers.
local function member(number)
  return struct.pack('>I6', number)
end

local function drop_held(key, series)
  redis.call('HDEL', space .. 'held:' .. key, series)
  redis.call('ZREM', space .. 'held_due', key .. series)
end

local function drop_all_held(key)
  for _, series in ipairs(redis.call('HKEYS', space .. 'held:' .. key)) do
    drop_held(key, series)
  end
end

-- A step that must not be taken twice leaves its result, for whoever did not hear it.
local function before()
  return redis.call('GET', space .. 'done:' .. ARGV[2])
end

local function done(result)
  redis.call('SET', space .. 'done:' .. ARGV[2], result, 'EX', REMEMBERED)
  return result
end
"""

#: What takes reports off the outbox.
_OUTBOX = """
-- An entry of `out`: number, person, series, report.
local function take_off(number)
  local entry = redis.call('ZRANGEBYSCORE', space .. 'out', number, number)[1]
  if not entry then return nil end
  local person = string.sub(entry, 7, 22)
  redis.call('ZREM', space .. 'out', entry)
  redis.call('ZREM', space .. 'due', member(number))
  redis.call('ZREM', space .. 'early', member(number))
  redis.call('ZREM', space .. 'late', member(number))
  redis.call('SREM', space .. 'waiting:' .. person, number)
  redis.call('HINCRBY', space .. 'figures', 'bytes', HEADS - #entry)
  local turn, tries, _ = redis.call('HGET', space .. 'turn', number), 0
  if turn then _, _, tries = struct.unpack('>ddH', turn) end
  redis.call('HDEL', space .. 'turn', number)
  return person, string.sub(entry, 23), tries > 0
end

local function past_of(key)
  local packed, entries, at = get('past:', key) or '', {}, 1
  while at <= #packed do
    local number, _, _, length = struct.unpack('>I6HBH', packed, at)
    entries[#entries + 1] = {number, string.sub(packed, at, at + 10 + length)}
    at = at + 11 + length
  end
  return entries
end

-- The persons' finished reports, read once and written once.
local pasts = {}

local function finish(number, status)
  local person, report, leased = take_off(number)
  if not person then return end
  pasts[person] = pasts[person] or past_of(person)
  if string.byte(report, 3) == 1 then -- a true value is wiped
    report = string.sub(report, 1, HEAD) .. string.char(0)
  end
  local head = struct.pack('>I6HBH', number, new_id(status), leased and 1 or 0, #report)
  table.insert(pasts[person], {tonumber(number), head .. report})
  if status ~= 'delivered' then
    local series = name_of(struct.unpack('>H', report))
    redis.call('HINCRBY', space .. 'loss', status .. ' ' .. series, 1)
  end
end

local function put_pasts()
  for person, entries in pairs(pasts) do
    table.sort(entries, function(a, b) return a[1] < b[1] end)
    local kept = {}
    for place = math.max(1, #entries - KEPT + 1), #entries do
      kept[#kept + 1] = entries[place][2]
    end
    put('past:', person, table.concat(kept))
  end
end
"""

PERSON = """
local person = person_of(ARGV[2])
if not person then return false end
local names = {}
for at = 1, #person.covered, 2 do
  names[#names + 1] = name_of(struct.unpack('>H', person.covered, at))
end
return {person.consented, struct.pack('>d', person.since), person.salt, names}
"""

ADD_PERSON = """
if not get('person:', ARGV[2]) then
  put_person(ARGV[2], {consented = 0, since = 0, salt = ARGV[3], covered = '', used = ''})
end
"""

CONSENTING = """
local keys = {}
for bucket = tonumber(ARGV[2]), tonumber(ARGV[3]) do
  local first = string.char(bit.rshift(bucket, 4))
  local entries = redis.call('HGETALL', space .. 'person:' .. bucket)
  for place = 1, #entries, 2 do
    if string.byte(entries[place + 1]) == 1 then keys[#keys + 1] = first .. entries[place] end
  end
end
return keys
"""

CONSENT = """
local key, given, now = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local person = person_of(key)
  or {since = 0, salt = ARGV[5], used = ''}
local covered = {}
for place = 6, #ARGV do covered[#covered + 1] = struct.pack('>H', new_id(ARGV[place])) end
person.covered = table.concat(covered)
person.consented = given
if given == 1 and person.since == 0 then person.since = now end
put_person(key, person)
if given ~= 1 then
  for _, number in ipairs(redis.call('SMEMBERS', space .. 'waiting:' .. key)) do
    take_off(number)
  end
  drop_all_held(key)
end
"""

FORGET = """
local key = ARGV[2]
local function close(report)
  local id, _, _, _, _, pseudonym = struct.unpack('>HBHBHc16', report)
  redis.call('ZADD', space .. 'row_close', 'NX', 0, name_of(id) .. pseudonym)
end
for _, entry in ipairs(past_of(key)) do
  if string.byte(entry[2], 9) == 1 then close(string.sub(entry[2], 12)) end
end
for _, number in ipairs(redis.call('SMEMBERS', space .. 'waiting:' .. key)) do
  local _, report, leased = take_off(number)
  if leased then close(report) end
end
drop_all_held(key)
put('past:', key, '')
put('person:', key, '')
"""

USED = """
local person = person_of(ARGV[2])
local at = person and find(person.used, 6, id_of(ARGV[3]))
if not at then return {-1, 0} end
local _, period, answers = struct.unpack('>HHH', person.used, at)
return {period, answers}
"""

CLOSE_ROW = """
local key, series, through = ARGV[2], new_id(ARGV[3]), tonumber(ARGV[4])
local person = person_of(key)
if not person then return end
local at, last, _ = find(person.used, 6, series), -1
if at then _, last = struct.unpack('>HH', person.used, at) end
if last <= through then
  person.used = replaced(person.used, 6, series, struct.pack('>HHH', series, through, ROW_CLOSED))
  put_person(key, person)
end
"""

SPENT = """
local ledger, rows = get('ledger:', ARGV[2]) or '', {}
for at = 1, #ledger, 22 do
  local id, life, first_day, end_day, spent = struct.unpack('>HI6I4I4I6', ledger, at)
  rows[#rows + 1] = {name_of(id), life, first_day, end_day, spent}
end
return rows
"""

HOLD = """
local result = before()
if result then return result end
local key, series, old, new, due = ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
if (redis.call('HGET', space .. 'held:' .. key, series) or '') ~= old then return done('0') end
local who = person_of(key)
if not who or who.consented ~= 1 then return done('0') end
redis.call('HSET', space .. 'held:' .. key, series, new)
redis.call('ZADD', space .. 'held_due', due, key .. series)
return done('1')
"""

HELD = """
return redis.call('HGET', space .. 'held:' .. ARGV[2], ARGV[3])
"""

HELD_DUE = """
local rows = {}
local due = redis.call('ZRANGEBYSCORE', space .. 'held_due', '-inf', ARGV[2], 'LIMIT', 0, ARGV[3])
for _, found in ipairs(due) do
  local key, series = string.sub(found, 1, 16), string.sub(found, 17)
  rows[#rows + 1] = {key, series, redis.call('HGET', space .. 'held:' .. key, series)}
end
return rows
"""

DROP_HELD = """
if redis.call('HGET', space .. 'held:' .. ARGV[2], ARGV[3]) == ARGV[4] then
  drop_held(ARGV[2], ARGV[3])
end
"""

SCHEDULE_ROW_CLOSES = """
for place = 2, #ARGV, 2 do
  redis.call('ZADD', space .. 'row_close', 'XX', ARGV[place + 1], ARGV[place])
end
"""

COMMIT = """
local result = before()
if result then return result end

-- All of it is decided first, and only then written.
local names, last = {}, 3 + tonumber(ARGV[3])
for place = 4, last do names[#names + 1] = ARGV[place] end

local ids, fresh = {}, redis.call('HLEN', space .. 'id')
local function id(place)
  if not ids[place] then
    local known = id_of(names[place])
    if known == 0 then
      fresh = fresh + 1
      known = fresh
    end
    ids[place] = known
  end
  return ids[place]
end

local people, ledgers, stored, frozen, fates = {}, {}, {}, {}, {}

local function person(key)
  if people[key] == nil then people[key] = person_of(key) or false end
  return people[key]
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
  if cost == 0 then return true end -- of an answer that is given up: nothing is revealed
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

local function fate(packed)
  local key, series, lineage, period, answer, cost, first_day, end_day, day_cap, life_cap,
    earliest, send_at, expires, free, has_report, of, at =
    struct.unpack('>c16HHHHI8I4I4I8I8dddBBH', packed)
  local who = person(key)
  if not who or who.consented ~= 1 then return 'n' end
  if free == 0 then
    local name = names[series]
    series = id(series)
    if not slot(who.used, series, period, answer) then return 'f' end
    if not charged(key, id(lineage), cost, first_day, end_day, day_cap, life_cap) then
      return 'o'
    end
    frozen[#frozen + 1] = {key, name, period}
    who.used = replaced(who.used, 6, series, struct.pack('>HHH', series, period, answer + 1))
    who.changed = true
  end
  if has_report == 1 then
    local report = struct.pack('>H', id(of)) .. string.sub(packed, at)
    stored[#stored + 1] = {key, report, earliest, send_at, expires}
  end
  return 's'
end

for place = last + 1, #ARGV do fates[#fates + 1] = fate(ARGV[place]) end

local known = {}
for place in pairs(ids) do known[#known + 1] = place end
table.sort(known, function(a, b) return ids[a] < ids[b] end)
for _, place in ipairs(known) do new_id(names[place]) end
for key, who in pairs(people) do
  if who and who.changed then put_person(key, who) end
end
for key, entries in pairs(ledgers) do put('ledger:', key, entries) end
for _, each in ipairs(frozen) do
  local key, series, period = unpack(each)
  local held = redis.call('HGET', space .. 'held:' .. key, series)
  if held and struct.unpack('>H', held) <= period then drop_held(key, series) end
end

local number, bytes = 0, 0
if #stored > 0 then
  number = redis.call('HINCRBY', space .. 'figures', 'number', #stored) - #stored
end
for _, each in ipairs(stored) do
  local key, report, earliest, send_at, expires = unpack(each)
  number, bytes = number + 1, bytes + #report - HEAD
  redis.call('ZADD', space .. 'out', number, member(number) .. key .. report)
  redis.call('ZADD', space .. 'due', send_at, member(number))
  redis.call('ZADD', space .. 'early', earliest, member(number))
  redis.call('ZADD', space .. 'late', expires, member(number))
  redis.call('SADD', space .. 'waiting:' .. key, number)
end
redis.call('HINCRBY', space .. 'figures', 'bytes', bytes)
return done(table.concat(fates))
"""

LEASE = """
local now, till, most, hurry =
  tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5] == '1'

local function turn_of(number)
  local turn = redis.call('HGET', space .. 'turn', number)
  if turn then return struct.unpack('>ddH', turn) end
  return 0, tonumber(redis.call('ZSCORE', space .. 'due', member(number))), 0
end

-- `due` knows of leases, `early` does not: in a hurry those that are on their way are passed over.
local index, at, rows = hurry and 'early' or 'due', 0, {}
local page
local taken = {}
repeat
  page = redis.call('ZRANGEBYSCORE', space .. index, '-inf', now, 'LIMIT', at, most)
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
  redis.call('HSET', space .. 'turn', number, struct.pack('>ddH', till, send_at, tries))
  redis.call('ZADD', space .. 'due', math.max(send_at, till), member(number))
  local entry = redis.call('ZRANGEBYSCORE', space .. 'out', number, number)[1]
  rows[#rows + 1] = {
    number, string.sub(entry, 7, 22), struct.pack('>dH', send_at, tries),
    name_of(struct.unpack('>H', entry, 23)), string.sub(entry, 25),
  }
end
return rows
"""

SETTLE = """
for place = 2, #ARGV, 2 do finish(ARGV[place], ARGV[place + 1]) end
put_pasts()
"""

OVERDUE = """
local numbers = {}
local beyond = tonumber(ARGV[3])
local function put_off(number, found)
  local turn = redis.call('HGET', space .. 'turn', number)
  if not turn then return false end
  local leased, send_at = struct.unpack('>ddH', turn)
  local earliest = tonumber(redis.call('ZSCORE', space .. 'early', found))
  return leased > beyond or send_at > earliest + PUT_OFF
end
local function see(first, last, every)
  local page = redis.call('ZRANGEBYSCORE', space .. 'due', first, last, 'LIMIT', 0, ARGV[4])
  for _, found in ipairs(page) do
    local number = struct.unpack('>I6', found)
    if every or put_off(number, found) then numbers[#numbers + 1] = number end
  end
end
see('-inf', '(' .. ARGV[2], true)
see('(' .. ARGV[3], '+inf', false)
return numbers
"""

ATTEMPTS = """
local most = 0
for _, turn in ipairs(redis.call('HVALS', space .. 'turn')) do
  local _, _, tries = struct.unpack('>ddH', turn)
  most = math.max(most, tries)
end
return most
"""

RESCHEDULE = """
if before() then return end
local unsent = tonumber(ARGV[3])
for place = 4, #ARGV, 2 do
  local number, due = ARGV[place], tonumber(ARGV[place + 1])
  if redis.call('ZSCORE', space .. 'due', member(number)) then
    local turn, tries, _ = redis.call('HGET', space .. 'turn', number), 0
    if turn then _, _, tries = struct.unpack('>ddH', turn) end
    tries = math.max(tries - unsent, 0)
    redis.call('HSET', space .. 'turn', number, struct.pack('>ddH', 0, due, tries))
    redis.call('ZADD', space .. 'due', due, member(number))
  end
end
done('')
"""

RETIRE = """
for _, found in ipairs(redis.call('ZRANGE', space .. 'held_due', 0, -1)) do
  if string.sub(found, 17) == ARGV[2] then drop_held(string.sub(found, 1, 16), ARGV[2]) end
end
if ARGV[3] == '0' then return end
local id = id_of(ARGV[2])
for _, entry in ipairs(redis.call('ZRANGE', space .. 'out', 0, -1)) do
  if struct.unpack('>H', entry, 23) == id then take_off(struct.unpack('>I6', entry)) end
end
"""

EXPIRE = """
local now, reports, size, most =
  tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local old = redis.call('ZRANGEBYSCORE', space .. 'late', '-inf', now, 'LIMIT', 0, most)
for _, found in ipairs(old) do finish(struct.unpack('>I6', found), 'aged') end
local left = most - #old
while left > 0 and (
  redis.call('ZCARD', space .. 'out') > reports
  or tonumber(redis.call('HGET', space .. 'figures', 'bytes') or 0) > size
) do
  local entry = redis.call('ZRANGE', space .. 'out', 0, 0)[1]
  finish(struct.unpack('>I6', entry), 'evicted')
  left = left - 1
end
put_pasts()
return left
"""

SENT = """
local rows = {}
for _, entry in ipairs(past_of(ARGV[2])) do
  local number, status, _, _, series = struct.unpack('>I6HBHH', entry[2])
  rows[#rows + 1] = {number, name_of(status), name_of(series), string.sub(entry[2], 14)}
end
for _, number in ipairs(redis.call('SMEMBERS', space .. 'waiting:' .. ARGV[2])) do
  local entry = redis.call('ZRANGEBYSCORE', space .. 'out', number, number)[1]
  local series = name_of(struct.unpack('>H', entry, 23))
  rows[#rows + 1] = {tonumber(number), 'waiting', series, string.sub(entry, 25)}
end
return rows
"""

LOSE = """
if before() then return end
for place = 3, #ARGV, 2 do
  redis.call('HINCRBY', space .. 'loss', ARGV[place], ARGV[place + 1])
end
done('')
"""


def _script(flags: str, *parts: str) -> str:
    numbers = (
        f"\nlocal REMEMBERED, KEPT, ROW_CLOSED = {REMEMBERED}, {KEPT}, {ROW_CLOSED}"
        f"\nlocal HEAD, HEADS, PUT_OFF = {HEAD}, {HEADS}, {PUT_OFF}\n"
    )
    return "".join([f"#!lua {flags}".strip(), numbers, _COMMON, *parts])


# Out of memory, Redis goes on reading, and takes what makes room; nothing else.
_READS, _GROWS, _FREES = "flags=no-writes", "", "flags=allow-oom"

SCRIPTS = {
    "person": _script(_READS, PERSON),
    "add_person": _script(_GROWS, ADD_PERSON),
    "consenting": _script(_READS, CONSENTING),
    "consent": _script(_FREES, _OUTBOX, CONSENT),
    "forget": _script(_FREES, _OUTBOX, FORGET),
    "used": _script(_READS, USED),
    "spent": _script(_READS, SPENT),
    "close_row": _script(_FREES, CLOSE_ROW),
    "hold": _script(_GROWS, HOLD),
    "held": _script(_READS, HELD),
    "held_due": _script(_READS, HELD_DUE),
    "drop_held": _script(_FREES, DROP_HELD),
    "commit": _script(_GROWS, COMMIT),
    "lease": _script(_FREES, LEASE),
    "overdue": _script(_READS, OVERDUE),
    "attempts": _script(_READS, ATTEMPTS),
    "settle": _script(_FREES, _OUTBOX, SETTLE),
    "reschedule": _script(_FREES, RESCHEDULE),
    "retire": _script(_FREES, _OUTBOX, RETIRE),
    "schedule_row_closes": _script(_FREES, SCHEDULE_ROW_CLOSES),
    "expire": _script(_FREES, _OUTBOX, EXPIRE),
    "sent": _script(_READS, _OUTBOX, SENT),
    "lose": _script(_GROWS, LOSE),
}
