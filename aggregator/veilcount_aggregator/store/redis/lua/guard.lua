-- The checks before every call that writes, and the height that a commit raises.
--
-- The base key says whose shard this is: a Redis that was emptied meanwhile takes nothing for a
-- store it does not have. The read-only mark is a key that is hardly ever there, which is of use twice:
-- while a cluster moves this slot to another node, asking for a missing key fails, and with it the
-- whole call, before anything is read from half a ledger.
--
-- The life says which process counts, and with whose history. A caller names the life in which it
-- has compared the height with what it acknowledged (acknowledged.py): in any other one nothing is
-- written for it.

-- The process, and its replication history: see records.py.
local function incarnation()
  local run = string.match(call('INFO', 'server'), 'run_id:(%w+)')
  return run .. '-' .. string.match(call('INFO', 'replication'), 'master_replid:(%w+)')
end

-- The same, and how often a replica was synchronized: see config_check.py. A function, since INFO
-- would send a hundred lines behind each write.
local function identity()
  local info = call('INFO', 'server', 'replication', 'stats')
  return {
    string.match(info, 'run_id:(%w+)'), string.match(info, 'master_replid:(%w+)'),
    string.match(info, 'sync_full:(%d+)'),
  }
end

-- The lives that this process has begun, by base. It has none after it was started or synchronized
-- by another, which loads the library anew; and another process's life was begun meanwhile where
-- the shard has another one.
local LIVES = {}

local function current_life(base)
  local key = base .. ':height'
  local kept = call('HGET', key, 'life')
  if kept and kept == LIVES[base] then
    return kept
  end
  local present = incarnation()
  if kept ~= present then
    if kept then
      call('HSET', key, 'ended:' .. kept, call('HGET', key, 'height') or 0)
    end
    call('HSET', key, 'life', present)
  end
  LIVES[base] = present
  return present
end

local function refusal(base, store, life)
  local found = call('MGET', base, base .. ':read_only')
  if found[1] ~= store then
    return redis.error_reply('REPLACED this is not the store that was opened')
  end
  if found[2] then
    return redis.error_reply('CLOSED the store is read-only')
  end
  if current_life(base) ~= life then
    return redis.error_reply('LIFE the height was not compared since this process began')
  end
end

-- The work gets the base, the life in which it is done, and the other arguments.
local function checked(work)
  return function(keys, args)
    local base, store, life = keys[1], args[1], args[2]
    return refusal(base, store, life) or work(base, life, unpack(args, 3))
  end
end

local function guarded(work)
  return checked(function(base, _, ...)
    return work(base, ...)
  end)
end

-- What is acknowledged to somebody: the reply has the height and the life before the result.
local function raising(work)
  return checked(function(base, life, ...)
    local result = work(base, ...)
    return {call('HINCRBY', base .. ':height', 'height', 1), life, result}
  end)
end

-- An operator accepts what the shard lacks; hosts compare no further back.
local function accept(keys, args)
  local base, store, microseconds = keys[1], args[1], args[2]
  if call('GET', base) ~= store then
    return redis.error_reply('REPLACED this is not the store that was opened')
  end
  current_life(base)
  call('HSET', base .. ':height', 'accepted', microseconds)
  return 1
end

local function set_read_only(keys, args)
  if args[1] == '1' then
    call('SET', keys[1] .. ':read_only', '1')
  else
    call('DEL', keys[1] .. ':read_only')
  end
  return 1
end
