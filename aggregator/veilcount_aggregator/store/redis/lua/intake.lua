-- The intake: all reports of a group are judged, and then all are written, or none.
--
-- The caller has said what it expects of each report, and what to add if it is right. Lua does not
-- roll back: so judging only reads, and so does reserving memory for counters. The first write comes
-- after the last reason to refuse.

-- What a group touches of one series: `fresh` counts the new rows of its periods.
local function look_up(base, volumes, series, epoch)
  local found = call('HMGET', base .. ':epochs:' .. series, epoch, 'dropped')
  local volume = volumes[series]
  if not volume then
    volume = {dropped = tonumber(found[2] or 0), fresh = {}, brought = {}, quotas = {}}
    volumes[series] = volume
  end
  return volume, open_ledger(base, series, epoch, found[1])
end

local function fresh_rows(base, series, volume, period)
  local rows = volume.fresh[period]
  if not rows then
    rows = tonumber(call('HGET', base .. ':fresh:' .. series, period) or 0)
    volume.fresh[period] = rows
  end
  return rows
end

-- A row as the group finds it; what it spends is kept here until all are judged.
local function find_row(ledger, place, field)
  local bucket = ledger.keys and bucket_of(ledger, place)
  local bitmap = bucket and call('HGET', bucket, field) or ''
  return {
    bucket = bucket, place = place, field = field, bitmap = bitmap, spent = count_spent(bitmap),
  }
end

-- What of a quota is spent, looked up once a group. Its key goes by itself: two hours are enough for
-- an hour and the clocks that differ.
local QUOTA_SECONDS = 7200

local function find_quota(base, leaf, given)
  local hour, source, limit = unpack(given)
  local name = hour .. ' ' .. source
  local quota = leaf.volume.quotas[name]
  if not quota then
    local key = base .. ':hourly:' .. leaf.series .. ':' .. hour
    quota = {key = key, source = source, rows = tonumber(call('HGET', key, source) or 0), brought = 0}
    leaf.volume.quotas[name] = quota
  end
  quota.limit = limit
  return quota
end

local function charge_quotas(volume)
  for _, quota in pairs(volume.quotas) do
    if quota.brought > 0 then
      call('HINCRBY', quota.key, quota.source, quota.brought)
      call('EXPIRE', quota.key, QUOTA_SECONDS)
    end
  end
end

local function verdict_of(base, leaf, row, slot, period, room, quota, otherwise)
  if is_spent(row.bitmap, slot) then
    return DUPLICATE
  elseif otherwise ~= COUNTED then
    return otherwise
  elseif row.spent == 0 and fresh_rows(base, leaf.series, leaf.volume, period) >= room then
    return FULL
  elseif row.spent == 0 and quota and quota.rows >= quota.limit then
    return DEFERRED
  elseif row.spent >= leaf.most then
    return OVER_BUDGET
  end
  return COUNTED
end

local function count(leaf, row, slot, period, quota)
  local moves, had = leaf.moves, row.spent
  if had == 0 then
    local volume = leaf.volume
    volume.fresh[period] = volume.fresh[period] + 1
    volume.brought[period] = (volume.brought[period] or 0) + 1
    leaf.brought = leaf.brought + 1
    if quota then
      quota.rows = quota.rows + 1
      quota.brought = quota.brought + 1
    end
  else
    moves[had] = (moves[had] or 0) - 1
  end
  moves[had + 1] = (moves[had + 1] or 0) + 1
  row.bitmap = spend(row.bitmap, slot)
  row.spent = had + 1
  if not row.changed then
    row.changed = true
    leaf.changed[#leaf.changed + 1] = row
  end
end

-- A page is what the group asks of one epoch of one series; a leaf is what becomes of it.
local function judge(base, volumes, page, verdicts)
  local series, epoch, most, width, rooms, quotas, charged, fields, places, slots, periods,
    otherwise, expected = unpack(page)
  local volume, ledger = look_up(base, volumes, series, epoch)
  local leaf = {
    series = series, epoch = epoch, most = most, width = width,
    volume = volume, ledger = ledger, moves = {}, changed = {}, brought = 0,
  }
  local rows, agreed = {}, true
  for at = 1, #slots do
    local verdict = STALE
    if epoch >= volume.dropped then
      local field = sub(fields, 12 * at - 11, 12 * at)
      local row = rows[field]
      if not row then
        row = find_row(ledger, places[at], field)
        rows[field] = row
      end
      local given = quotas[charged[at]]
      local quota = given and find_quota(base, leaf, given)
      verdict = verdict_of(
        base, leaf, row, slots[at], periods[at], rooms[at], quota, otherwise[at])
      if verdict == COUNTED then
        count(leaf, row, slots[at], periods[at], quota)
      end
    end
    verdicts[#verdicts + 1] = verdict
    agreed = agreed and verdict == expected[at]
  end
  return leaf, agreed
end

local function write_rows(base, leaf)
  local ledger = leaf.ledger
  if ledger.isnew then
    begin_ledger(ledger, leaf.width)
  end
  local before = ledger.buckets
  grow(ledger, leaf.brought)
  local moved = ledger.buckets ~= before
  for _, row in ipairs(leaf.changed) do
    local bucket = row.bucket
    if moved or not bucket then
      bucket = bucket_of(ledger, row.place)
    end
    call('HSET', bucket, row.field, row.bitmap)
  end
  if leaf.brought > 0 then
    keep_ledger(ledger)
  end
  local operations = {}
  for spent, by in pairs(leaf.moves) do
    add(operations, spent - 1, by)
  end
  call_in_parts('BITFIELD', base .. ':spread:' .. leaf.series .. ':' .. leaf.epoch, operations)
end

local function commit(base, packed)
  local pages, given, notes, limit = unpack(cmsgpack.unpack(packed))
  local volumes, leaves, verdicts, agreed = {}, {}, {}, true
  for at, page in ipairs(pages) do
    local leaf, agrees = judge(base, volumes, page, verdicts)
    leaves[at] = leaf
    agreed = agreed and agrees
  end
  if not agreed then
    for at, verdict in ipairs(verdicts) do
      verdicts[at] = char(verdict)
    end
    return table.concat(verdicts)
  end
  local tallies, budget, unfit = plan_tallies(base, given, limit)
  if #unfit > 0 then
    return unfit
  end
  for _, leaf in ipairs(leaves) do
    if #leaf.changed > 0 then
      write_rows(base, leaf)
    end
  end
  for series, volume in pairs(volumes) do
    for period, rows in pairs(volume.brought) do
      call('HINCRBY', base .. ':fresh:' .. series, period, rows)
    end
    charge_quotas(volume)
  end
  write_tallies(base, tallies, budget)
  for at = 1, #notes, 2 do
    call('HINCRBY', base .. ':notes', notes[at], notes[at + 1])
  end
  return 1
end
