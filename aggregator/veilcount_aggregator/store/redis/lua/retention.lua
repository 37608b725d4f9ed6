-- Rows apart from counting: closing one, dropping epochs, and transfer from and to other stores.

local function close_row(base, series, field, place, closed, epochs)
  local found = 0
  local dropped = tonumber(call('HGET', base .. ':epochs:' .. series, 'dropped') or 0)
  for _, epoch in ipairs(cmsgpack.unpack(epochs)) do
    local ledger = find_ledger(base, series, epoch)
    if epoch >= dropped and ledger.keys then
      local bucket = bucket_of(ledger, tonumber(place))
      if call('HEXISTS', bucket, field) == 1 then
        call('HSET', bucket, field, closed)
        found = 1
      end
    end
  end
  return found
end

-- Retention. `dropped` is the first epoch that takes reports. `:drops:SERIES` has the time of each of
-- the last drops, by this server's own clock, and `deleted`: the first epoch with all its rows.

local function seconds()
  return tonumber(call('TIME')[1])
end

local function dropped_epochs(base, series)
  return tonumber(call('HGET', base .. ':epochs:' .. series, 'dropped') or 0)
end

local function first_whole(base, series, dropped)
  return tonumber(call('HGET', base .. ':drops:' .. series, 'deleted') or dropped)
end

-- Reports of dropped epochs are stale from here on; the rows stay, so that a drop can be taken back.
local function mark_dropped(base, series, epochs, due)
  local dropped = dropped_epochs(base, series)
  epochs = tonumber(epochs)
  if epochs <= dropped then
    return 0
  end
  local now = seconds()
  if now < tonumber(due) then
    return redis.error_reply('TOOEARLY by the clock of this server')
  end
  call('SADD', base .. ':series', series)
  call('HSET', base .. ':drops:' .. series, 'deleted', first_whole(base, series, dropped), epochs, now)
  call('HSET', base .. ':epochs:' .. series, 'dropped', epochs)
  return epochs - dropped
end

local function restore_dropped(base, series)
  local dropped = dropped_epochs(base, series)
  local deleted = first_whole(base, series, dropped)
  if deleted < dropped then
    call('HSET', base .. ':epochs:' .. series, 'dropped', deleted)
    call('DEL', base .. ':drops:' .. series)
    call('HSET', base .. ':drops:' .. series, 'deleted', deleted)
  end
  return dropped - deleted
end

-- Gives up what was dropped so many seconds ago: none of it can be restored.
local function give_up_dropped(base, series, kept)
  local drops, latest = base .. ':drops:' .. series, seconds() - tonumber(kept)
  local deleted = first_whole(base, series, dropped_epochs(base, series))
  local moments = call('HGETALL', drops)
  for at = 1, #moments, 2 do
    local epochs = tonumber(moments[at])
    if epochs and tonumber(moments[at + 1]) <= latest then
      deleted = math.max(deleted, epochs)
      call('HDEL', drops, epochs)
    end
  end
  if #moments > 0 then
    call('HSET', drops, 'deleted', deleted)
  end
  return deleted
end

-- Frees some buckets of an epoch that was given up, the last first; returns how many are left.
local function delete_rows(base, series, epoch, most)
  local known = base .. ':epochs:' .. series
  local ledger = find_ledger(base, series, epoch)
  if tonumber(epoch) >= first_whole(base, series, dropped_epochs(base, series)) or not ledger.keys then
    return 0
  end
  local left = math.max(ledger.buckets - tonumber(most), 0)
  for bucket = left, ledger.buckets - 1 do
    call('UNLINK', ledger.keys .. bucket)
  end
  ledger.buckets = left
  if left > 0 then
    keep_ledger(ledger)
  else
    call('HSET', known, epoch, '') -- the epoch is still known, for its spread
  end
  return left
end

-- Rows of another store, with the bitmaps they have there.
local function import_rows(base, series, epoch, width, packed)
  local fields, places, bitmaps = unpack(cmsgpack.unpack(packed))
  local ledger, brought = find_ledger(base, series, epoch), 0
  if ledger.isnew then
    begin_ledger(ledger, tonumber(width))
  end
  for at = 1, #places do
    local field = sub(fields, 12 * at - 11, 12 * at)
    brought = brought + call('HSET', bucket_of(ledger, places[at]), field, bitmaps[at])
  end
  grow(ledger, brought)
  keep_ledger(ledger)
  return brought
end

-- The rows of some buckets, each with its whole bitmap, end to end.
local function read_rows(keys, args)
  local base, series, epoch = keys[1], args[1], args[2]
  local first, last = tonumber(args[3]), tonumber(args[4])
  local ledger, found = find_ledger(base, series, epoch), {}
  if not ledger.keys then
    return ''
  end
  for bucket = first, math.min(last, ledger.buckets - 1) do
    local kept = call('HGETALL', ledger.keys .. bucket)
    for at = 2, #kept, 2 do
      kept[at] = kept[at] .. rep('\0', ledger.width - #kept[at])
    end
    found[#found + 1] = table.concat(kept)
  end
  return table.concat(found)
end
