-- Batches of shufflers: all of a series is in one shard, its entries, spent tokens and tallies, so
-- that one call changes them together.

local function is_spent(tokens, rows)
  for _, row in ipairs(rows) do
    if call('SISMEMBER', tokens, row) == 1 then
      return true
    end
  end
  return false
end

local function change_batch(base, packed)
  local series, key, period, entry, expected, rows, tallies = unpack(cmsgpack.unpack(packed))
  local batches = base .. ':batches:' .. series
  local tokens = base .. ':tokens:' .. series .. ':' .. period
  if call('HGET', batches, key) ~= expected or is_spent(tokens, rows) then
    return 0
  end
  call('SADD', base .. ':series', series)
  if entry then
    call('HSET', batches, key, entry)
  else
    call('HDEL', batches, key)
  end
  if #rows > 0 then
    call('SADD', base .. ':token_periods:' .. series, period)
    call_in_parts('SADD', tokens, rows)
  end
  write_tallies(base, tallies)
  return 1
end

local function forget_tokens(base, series, period)
  call('UNLINK', base .. ':tokens:' .. series .. ':' .. period)
  call('SREM', base .. ':token_periods:' .. series, period)
  return 1
end
