-- Commit: all reports of a group are judged, and then all are written, or none.
--
-- The caller has said what it expects of each report, and what to add if it is right. Lua does not
-- roll back: so judging only reads. The first write comes after the last reason to refuse.

-- What a group touches of one series: `new_rows` counts the new rows of its periods.
local function look_up(base, states, series, epoch)
  local found = call('HMGET', base .. ':epochs:' .. series, epoch, 'dropped')
  local state = states[series]
  if not state then
    state = {dropped = tonumber(found[2] or 0), new_rows = {}, brought = {}, quotas = {}}
    states[series] = state
  end
  return state, open_ledger(base, series, epoch, found[1])
end

local function new_rows_of(base, series, state, period)
  local rows = state.new_rows[period]
  if not rows then
    rows = tonumber(call('HGET', base .. ':new:' .. series, period) or 0)
    state.new_rows[period] = rows
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

local function find_quota(base, batch, given)
  local hour, source, limit = unpack(given)
  local name = hour .. ' ' .. source
  local quota = batch.state.quotas[name]
  if not quota then
    local key = base .. ':hourly:' .. batch.series .. ':' .. hour
    quota = {key = key, source = source, rows = tonumber(call('HGET', key, source) or 0), brought = 0}
    batch.state.quotas[name] = quota
  end
  quota.limit = limit
  return quota
end

local function charge_quotas(state)
  for _, quota in pairs(state.quotas) do
    if quota.brought > 0 then
      call('HINCRBY', quota.key, quota.source, quota.brought)
      call('EXPIRE', quota.key, QUOTA_SECONDS)
    end
  end
end

local function verdict_of(base, batch, row, slot, period, row_limit, quota, default_verdict)
  if is_spent(row.bitmap, slot) then
    return DUPLICATE
  elseif default_verdict ~= COUNTED then
    return default_verdict
  elseif row.spent == 0 and new_rows_of(base, batch.series, batch.state, period) >= row_limit then
    return FULL
  elseif row.spent == 0 and quota and quota.rows >= quota.limit then
    return DEFERRED
  elseif row.spent >= batch.most then
    return OVER_BUDGET
  end
  return COUNTED
end

local function count(batch, row, slot, period, quota)
  local moves, had = batch.moves, row.spent
  if had == 0 then
    local state = batch.state
    state.new_rows[period] = state.new_rows[period] + 1
    state.brought[period] = (state.brought[period] or 0) + 1
    batch.brought = batch.brought + 1
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
    batch.changed[#batch.changed + 1] = row
  end
end

-- The request has the group's reports of one epoch of a series; the batch, what becomes of them.
local function judge_reports(base, states, request, verdicts)
  local series, epoch, most, width, row_limits, quotas, charged, fields, places, slots, periods,
    default_verdict, expected = unpack(request)
  local state, ledger = look_up(base, states, series, epoch)
  local batch = {
    series = series, epoch = epoch, most = most, width = width,
    state = state, ledger = ledger, moves = {}, changed = {}, brought = 0,
  }
  local rows, agreed = {}, true
  for at = 1, #slots do
    local verdict = STALE
    if epoch >= state.dropped then
      local field = sub(fields, 12 * at - 11, 12 * at)
      local row = rows[field]
      if not row then
        row = find_row(ledger, places[at], field)
        rows[field] = row
      end
      local given = quotas[charged[at]]
      local quota = given and find_quota(base, batch, given)
      verdict = verdict_of(
        base, batch, row, slots[at], periods[at], row_limits[at], quota, default_verdict[at])
      if verdict == COUNTED then
        count(batch, row, slots[at], periods[at], quota)
      end
    end
    verdicts[#verdicts + 1] = verdict
    agreed = agreed and verdict == expected[at]
  end
  return batch, agreed
end

local function write_rows(base, batch)
  local ledger = batch.ledger
  if ledger.isnew then
    begin_ledger(ledger, batch.width)
  end
  local before = ledger.buckets
  grow(ledger, batch.brought)
  local moved = ledger.buckets ~= before
  for _, row in ipairs(batch.changed) do
    local bucket = row.bucket
    if moved or not bucket then
      bucket = bucket_of(ledger, row.place)
    end
    call('HSET', bucket, row.field, row.bitmap)
  end
  if batch.brought > 0 then
    keep_ledger(ledger)
  end
  local operations = {}
  for spent, by in pairs(batch.moves) do
    if by ~= 0 then  -- a row that spent many passed through most of them
      add(operations, spent - 1, by)
    end
  end
  call_in_parts('BITFIELD', base .. ':spent:' .. batch.series .. ':' .. batch.epoch, operations)
end

local function commit(base, packed)
  local requests, tallies, counts = unpack(cmsgpack.unpack(packed))
  local states, batches, verdicts, agreed = {}, {}, {}, true
  for at, request in ipairs(requests) do
    local batch, agrees = judge_reports(base, states, request, verdicts)
    batches[at] = batch
    agreed = agreed and agrees
  end
  if not agreed then
    for at, verdict in ipairs(verdicts) do
      verdicts[at] = char(verdict)
    end
    return table.concat(verdicts)
  end
  for _, batch in ipairs(batches) do
    if #batch.changed > 0 then
      write_rows(base, batch)
    end
  end
  for series, state in pairs(states) do
    for period, rows in pairs(state.brought) do
      call('HINCRBY', base .. ':new:' .. series, period, rows)
    end
    charge_quotas(state)
  end
  write_tallies(base, tallies)
  for at = 1, #counts, 2 do
    call('HINCRBY', base .. ':counts', counts[at], counts[at + 1])
  end
  return 1
end
