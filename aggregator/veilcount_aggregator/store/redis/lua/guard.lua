-- The checks before every call that writes.
--
-- The base key says whose shard this is: a Redis that was emptied meanwhile takes nothing for a
-- store it does not have. The read-only mark is a key that is hardly ever there, which is of use twice:
-- while a cluster moves this slot to another node, asking for a missing key fails, and with it the
-- whole call, before anything is read from half a ledger.

local function refusal(base, store)
  local found = call('MGET', base, base .. ':read_only')
  if found[1] ~= store then
    return redis.error_reply('REPLACED this is not the store that was opened')
  end
  if found[2] then
    return redis.error_reply('CLOSED the store is read-only')
  end
end

local function guarded(work)
  return function(keys, args)
    return refusal(keys[1], args[1]) or work(keys[1], unpack(args, 2))
  end
end

local function set_read_only(keys, args)
  if args[1] == '1' then
    call('SET', keys[1] .. ':read_only', '1')
  else
    call('DEL', keys[1] .. ':read_only')
  end
  return 1
end
