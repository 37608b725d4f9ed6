-- Small records, changed by whoever saw the latest generation; and the identity of the store.

-- The kinds are a set of their own: a kind whose records are changed one at a time has no generation.
local function write_record(base, kind, key, value)
  if value then
    call('SADD', base .. ':kinds', kind)
    call('HSET', base .. ':records:' .. kind, key, value)
  else
    call('HDEL', base .. ':records:' .. kind, key)
  end
end

local function write_records(base, records)
  local generation = call('INCR', base .. ':generation')
  for at = 1, #records, 3 do
    local kind, key, value = records[at], records[at + 1], records[at + 2]
    write_record(base, kind, key, value)
    call('HSET', base .. ':generations', kind, generation)
  end
end

local function change_records(base, generation, packed)
  if tonumber(call('GET', base .. ':generation') or 0) ~= tonumber(generation) then
    return 0
  end
  write_records(base, cmsgpack.unpack(packed))
  return 1
end

-- One record, if it is as expected: no generation, so that writers of others do not meet.
local function change_record(base, packed)
  local kind, key, value, expected = unpack(cmsgpack.unpack(packed))
  if call('HGET', base .. ':records:' .. kind, key) ~= expected then
    return 0
  end
  write_record(base, kind, key, value)
  return 1
end

local function import_records(base, packed)
  write_records(base, cmsgpack.unpack(packed))
  return 1
end

-- The process that has the records, and its replication history: see records.py.
local function incarnation()
  local run = string.match(call('INFO', 'server'), 'run_id:(%w+)')
  return run .. '-' .. string.match(call('INFO', 'replication'), 'master_replid:(%w+)')
end

-- The first caller creates the identity; all others get it as it is.
local function create_identity(keys, args)
  local key = keys[1] .. ':identity'
  if call('EXISTS', key) == 0 then
    call('HSET', key, unpack(args))
  end
  return call('HGETALL', key)
end
