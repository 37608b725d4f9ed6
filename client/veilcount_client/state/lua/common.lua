-- What every step knows. KEYS[1] is the key of the root secret, ARGV[1] that secret's digest: a Redis
-- that was emptied meanwhile accepts no step for a root that it does not have.
--
-- All keys share the root's hash slot. Persons, ledgers and finished reports lie in hashes of some
-- dozens of persons each, which Redis keeps as one packed list up to 128 entries of at most 64 bytes
-- [Redis, memory optimization]: hence binary records, numbers instead of names, and 4,096 buckets.
--
--   person     consented, salt, declined lineages; last answered period and answers of a series
--   coverage   of each series: since, resumed, whether it is current; outlives its person
--   ledger     of each lineage: life, first day, end day, spent in that range
--   past       of each finished report: its number, its status, itself
--   out        the waiting reports, each with its number as score
--   due, early, late   order their numbers by when they leave, may leave, and expire
--   turn       of each report that was leased or rescheduled: end of the lease, send_at, tries
--   held       of each person: the running values, by series; `held_due` orders all of them
--   token      of each person: the tokens, by pseudonym
--
-- Lua does not roll back: a step reads and decides first, and writes only what cannot fail any more.
-- What would make Redis grow is refused by Redis itself, before the first line, when memory is out;
-- reading, and what frees memory (allow-oom), go on.
if redis.sha1hex(redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then
  return redis.error_reply('ANEW another root')
end

local prefix = string.sub(KEYS[1], 1, -5) -- without 'root'

local function bucket_of(kind, key)
  return prefix .. kind .. bit.rshift(struct.unpack('>H', key), 4), string.sub(key, 2)
end

local function get(kind, key)
  return redis.call('HGET', bucket_of(kind, key))
end

local function put(kind, key, value)
  local bucket, field = bucket_of(kind, key)
  if value == '' then
    redis.call('HDEL', bucket, field)
  else
    redis.call('HSET', bucket, field, value)
  end
end

-- Names are long and few: each gets a number, for good.
local function id_of(name)
  return tonumber(redis.call('HGET', prefix .. 'id', name) or 0)
end

local function new_id(name)
  local id = id_of(name)
  if id == 0 then
    id = redis.call('HLEN', prefix .. 'id') + 1
    redis.call('HSET', prefix .. 'id', name, id)
    redis.call('HSET', prefix .. 'name', id, name)
  end
  return id
end

local function name_of(id)
  return redis.call('HGET', prefix .. 'name', id)
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
  local consented, salt, declined, at = struct.unpack('>Bc16H', packed)
  return {
    consented = consented, salt = salt,
    declined = string.sub(packed, at, at + 2 * declined - 1),
    used = string.sub(packed, at + 2 * declined),
  }
end

local function put_person(key, person)
  put('person:', key, struct.pack(
    '>Bc16H', person.consented, person.salt, #person.declined / 2
  ) .. person.declined .. person.used)
end

-- The coverage of a person, a list of entries: those of one series, or all, which `change` replaces.
local function change_coverage(key, id, change)
  local entries, changed = get('coverage:', key) or '', {}
  for at = 1, #entries, COVERED do
    local series, since, resumed, is_current, round = struct.unpack('>HddBI4', entries, at)
    if id == nil or series == id then
      since, resumed, is_current, round = change(since, resumed, is_current, round)
    end
    changed[#changed + 1] = struct.pack('>HddBI4', series, since, resumed, is_current, round)
  end
  put('coverage:', key, table.concat(changed))
end

-- What was recorded before is of an earlier round, and dropped.
local function withdraw(key, id)
  change_coverage(key, id, function(since, resumed, is_current, round)
    return since, resumed, 0, round + is_current
  end)
end

local function agrees(who, entries, id, round)
  local at = who and who.consented == 1 and find(entries, COVERED, id)
  if not at then return false end
  local _, _, _, is_current, current_round = struct.unpack('>HddBI4', entries, at)
  return is_current == 1 and round == current_round
end

-- In `due`, `early` and `late`: equals stand in the order of their numbers.
local function member(number)
  return struct.pack('>I6', number)
end

local function entry_of(number)
  return redis.call('ZRANGEBYSCORE', prefix .. 'out', number, number)[1]
end

local function sealed_bytes(number)
  return (struct.unpack('>H', entry_of(number), HEADS - 1))
end

-- When the lease of a waiting report ends, when it is due without one, how often it was leased.
local function turn_of(number)
  local turn = redis.call('HGET', prefix .. 'turn', number)
  if not turn then
    return 0, tonumber(redis.call('ZSCORE', prefix .. 'due', member(number))), 0
  end
  local leased, send_at, tries = struct.unpack('>ddH', turn)
  return leased, send_at, tries
end

local function put_turn(number, leased, send_at, tries)
  redis.call('HSET', prefix .. 'turn', number, struct.pack('>ddH', leased, send_at, tries))
  redis.call('ZADD', prefix .. 'due', math.max(send_at, leased), member(number))
end

local function put_held(key, series, value, due)
  redis.call('HSET', prefix .. 'held:' .. key, series, value)
  redis.call('ZADD', prefix .. 'held_due', due, key .. series)
end

local function drop_held(key, series)
  redis.call('HDEL', prefix .. 'held:' .. key, series)
  redis.call('ZREM', prefix .. 'held_due', key .. series)
end

local function drop_all_held(key)
  for _, series in ipairs(redis.call('HKEYS', prefix .. 'held:' .. key)) do
    drop_held(key, series)
  end
end

-- A step that must not be taken twice leaves its result, for a client that lost the reply.
local function remembered_result()
  return redis.call('GET', prefix .. 'done:' .. ARGV[2])
end

local function remember_result(result)
  redis.call('SET', prefix .. 'done:' .. ARGV[2], result, 'EX', REMEMBERED)
  return result
end
