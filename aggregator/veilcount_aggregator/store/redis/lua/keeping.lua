-- What is done to rows beside counting: closing one, dropping an epoch, carrying them elsewhere.

local function forget(base, series, field, place, closed, epochs)
  local found = 0
  local known = base .. ':epochs:' .. series
  local dropped = tonumber(call('HGET', known, 'dropped') or 0)
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

-- From here on nobody looks at those rows: that they are still there is a matter of memory only.
local function drop(base, series, epochs)
  local known = base .. ':epochs:' .. series
  local dropped = tonumber(call('HGET', known, 'dropped') or 0)
  if tonumber(epochs) > dropped then
    call('SADD', base .. ':series', series)
    call('HSET', known, 'dropped', epochs)
  end
  return 1
end

-- Frees some buckets of a dropped epoch, the last first; returns how many are left.
local function sweep(base, series, epoch, most)
  local known = base .. ':epochs:' .. series
  local dropped = tonumber(call('HGET', known, 'dropped') or 0)
  local ledger = find_ledger(base, series, epoch)
  if tonumber(epoch) >= dropped or not ledger.keys then
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
local function settle(base, series, epoch, width, packed)
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
local function rows(keys, args)
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
