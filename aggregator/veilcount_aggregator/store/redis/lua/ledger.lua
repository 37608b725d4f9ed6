-- The ledger of one epoch: rows and their bitmaps, in buckets that stay packed lists.
--
-- Linear hashing [Litwin 1980]: the ledger grows by one bucket at a time, always the next in turn,
-- so that no call ever moves more than a bucket or two for each LOAD rows it brings. A bucket that
-- is about to be split holds twice LOAD on average: with five standard deviations on top it still
-- has fewer than the 128 entries up to which Redis keeps a hash as a packed list.

-- What Redis gives to a function that runs, not to one that is loaded: `register` fetches it.
local call, floor, byte, char, sub, rep

local LOAD = 40
local PACKED = 128 -- entries
local AT_ONCE = 1000 -- arguments of one command: Lua's stack holds 8,000

local ONES = {[0] = 0} -- in a byte
for half = 0, 127 do
  ONES[2 * half] = ONES[half]
  ONES[2 * half + 1] = ONES[half] + 1
end

-- Bitmaps: slot 0 is the lowest bit of the first byte; zero bytes at the end are not kept.

local function is_spent(bitmap, slot)
  local eight = byte(bitmap, floor(slot / 8) + 1)
  return eight ~= nil and floor(eight / 2 ^ (slot % 8)) % 2 == 1
end

local function spend(bitmap, slot)
  local at, bit = floor(slot / 8) + 1, 2 ^ (slot % 8)
  if at > #bitmap then
    return bitmap .. rep('\0', at - 1 - #bitmap) .. char(bit)
  end
  return sub(bitmap, 1, at - 1) .. char(byte(bitmap, at) + bit) .. sub(bitmap, at + 1)
end

local function count_spent(bitmap)
  local spent = 0
  for at = 1, #bitmap do
    spent = spent + ONES[byte(bitmap, at)]
  end
  return spent
end

-- A command with many arguments, some at a time.

local function call_in_parts(command, key, arguments)
  for first = 1, #arguments, AT_ONCE do
    local last = math.min(first + AT_ONCE - 1, #arguments)
    call(command, key, unpack(arguments, first, last))
  end
end

-- `buckets` is between `half` and twice of it, `half` a power of two; `number` names the keys.

local function open_ledger(base, series, epoch, kept)
  local number, rows, buckets, width = string.match(kept or '', '(%d+) (%d+) (%d+) (%d+)')
  local ledger = {
    base = base, series = series, epoch = epoch, isnew = not number, width = tonumber(width),
    number = number, rows = tonumber(rows or 0), buckets = tonumber(buckets or 1), half = 1,
    keys = number and base .. ':' .. number .. ':',
  }
  while ledger.half * 2 <= ledger.buckets do
    ledger.half = ledger.half * 2
  end
  return ledger
end

local function find_ledger(base, series, epoch)
  return open_ledger(base, series, epoch, call('HGET', base .. ':epochs:' .. series, epoch))
end

-- Numbers are never used twice: a ledger that is being dropped and a new one never meet.
local function begin_ledger(ledger, width)
  ledger.number = call('INCR', ledger.base .. ':ledgers')
  ledger.keys = ledger.base .. ':' .. ledger.number .. ':'
  ledger.width = width
  ledger.isnew = false
  call('SADD', ledger.base .. ':series', ledger.series)
end

local function keep_ledger(ledger)
  local kept = string.format(
    '%d %d %d %d', ledger.number, ledger.rows, ledger.buckets, ledger.width)
  call('HSET', ledger.base .. ':epochs:' .. ledger.series, ledger.epoch, kept)
end

local function bucket_of(ledger, place)
  local bucket = place % (2 * ledger.half)
  if bucket >= ledger.buckets then
    bucket = place % ledger.half
  end
  return ledger.keys .. bucket
end

-- A bucket that was too large for a packed list is written anew, so that it is one again.
local function split(ledger)
  local from, to = ledger.buckets - ledger.half, ledger.buckets
  local stay, go, leave = {}, {}, {}
  local rows = call('HGETALL', ledger.keys .. from)
  for at = 1, #rows, 2 do
    local stays = struct.unpack('<I4', rows[at]) % (2 * ledger.half) == from
    local side = stays and stay or go
    side[#side + 1] = rows[at]
    side[#side + 1] = rows[at + 1]
    if not stays then
      leave[#leave + 1] = rows[at]
    end
  end
  if #rows > 2 * PACKED then
    call('DEL', ledger.keys .. from)
    call_in_parts('HSET', ledger.keys .. from, stay)
  else
    call_in_parts('HDEL', ledger.keys .. from, leave)
  end
  call_in_parts('HSET', ledger.keys .. to, go)
  ledger.buckets = to + 1
  if ledger.buckets == 2 * ledger.half then
    ledger.half = ledger.buckets
  end
end

-- Before the rows are written, so that none is moved in the call that brings it.
local function grow(ledger, rows)
  ledger.rows = ledger.rows + rows
  while ledger.rows > LOAD * ledger.buckets do
    split(ledger)
  end
end
