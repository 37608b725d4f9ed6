-- Counters: a small tally is one string, a large one has pages that are made when they are touched.
--
-- Their memory was admitted with the definition: nothing here is refused. A page is a packed hash of
-- the counters that are not zero until it would have more than SPARSE of them, and then a string. An
-- index says which it is, in two bits a page. A tally of hashes has pages by their first bits, which
-- stay hashes: a string would have a counter for each of the others too. Its index has a bit a page.

local ABSENT, PACKED_PAGE, WHOLE_PAGE = 0, 1, 2
local PAGES_AT_ONCE = 300 -- three arguments each

local function add(operations, place, by)
  local at = #operations
  operations[at + 1] = 'INCRBY'
  operations[at + 2] = 'i64'
  operations[at + 3] = '#' .. place
  operations[at + 4] = by
end

local function tally_keys(base, series, cell)
  local name = series .. ':' .. cell
  return base .. ':tally:' .. name, base .. ':pages:' .. name, base .. ':hashes:' .. name
end

local function index_bytes(counters)
  return math.ceil(math.ceil(counters / PAGE) / PAGES_A_BYTE)
end

-- Made at its full length, which nothing added to the last counter does: a string that grows bit by
-- bit is given twice what it needs.
local function write_string(tally)
  local operations = {}
  add(operations, tally.counters - 1, 0)
  for at = 1, #tally.places do
    add(operations, tally.places[at], tally.counts[at])
  end
  call_in_parts('BITFIELD', tally.key, operations)
end

-- The pages that a group touches of a large tally.
local function find_pages(tally, width)
  local found, pages = {}, {}
  for at, place in ipairs(tally.places) do
    local number = floor(place / width)
    local page = found[number]
    if not page then
      page = {number = number, key = tally.key .. ':' .. number, offsets = {}, counts = {}}
      found[number] = page
      pages[#pages + 1] = page
    end
    page.offsets[#page.offsets + 1] = place % width
    page.counts[#page.counts + 1] = tally.counts[at]
  end
  return pages
end

-- Reads the state of each page.
local function find_states(index, pages)
  for first = 1, #pages, PAGES_AT_ONCE do
    local operations = {}
    for at = first, math.min(first + PAGES_AT_ONCE - 1, #pages) do
      operations[#operations + 1] = 'GET'
      operations[#operations + 1] = 'u2'
      operations[#operations + 1] = '#' .. pages[at].number
    end
    for at, state in ipairs(call('BITFIELD', index, unpack(operations))) do
      pages[first + at - 1].state = state
    end
  end
end

-- What a page will be.
local function next_state(page)
  if page.state == WHOLE_PAGE then
    return WHOLE_PAGE
  end
  local held, new = 0, #page.offsets
  if page.state == PACKED_PAGE then
    held = call('HLEN', page.key)
    if new <= SPARSE then
      page.found = call('HMGET', page.key, unpack(page.offsets))
      for _, count in ipairs(page.found) do
        new = new - (count and 1 or 0)
      end
    end
  end
  return held + new > SPARSE and WHOLE_PAGE or PACKED_PAGE
end

local function write_packed(page)
  local entries = {}
  for at, offset in ipairs(page.offsets) do
    local held = page.found and page.found[at] or 0
    entries[#entries + 1] = offset
    entries[#entries + 1] = string.format('%.0f', tonumber(held) + page.counts[at])
  end
  call_in_parts('HSET', page.key, entries)
end

local function write_whole(page)
  local operations = {}
  if page.state ~= WHOLE_PAGE then
    local held = page.state == PACKED_PAGE and call('HGETALL', page.key) or {}
    call('DEL', page.key)
    operations = {'SET', 'i64', '#' .. PAGE - 1, 0}
    for at = 1, #held, 2 do
      add(operations, held[at], held[at + 1])
    end
  end
  for at, offset in ipairs(page.offsets) do
    add(operations, offset, page.counts[at])
  end
  call_in_parts('BITFIELD', page.key, operations)
end

local function write_pages(tally)
  local pages, states = find_pages(tally, PAGE), {}
  find_states(tally.index, pages)
  if call('STRLEN', tally.index) < index_bytes(tally.counters) then
    states = {'SET', 'u2', '#' .. PAGES_A_BYTE * index_bytes(tally.counters) - 1, 0}
  end
  for _, page in ipairs(pages) do
    local becomes = next_state(page)
    if becomes == WHOLE_PAGE then
      write_whole(page)
    else
      write_packed(page)
    end
    if page.state ~= becomes then
      states[#states + 1] = 'SET'
      states[#states + 1] = 'u2'
      states[#states + 1] = '#' .. page.number
      states[#states + 1] = becomes
    end
  end
  call_in_parts('BITFIELD', tally.index, states)
end

local function write_hashes(tally)
  for _, page in ipairs(find_pages(tally, HASH_PAGE)) do
    for at, offset in ipairs(page.offsets) do
      call('HINCRBY', page.key, offset, page.counts[at])
    end
    call('SETBIT', tally.hashes, page.number, 1)
  end
end

local function write_tallies(base, given)
  for _, each in ipairs(given) do
    local series, counters, cell, reports, places, counts = unpack(each)
    local tally = {counters = counters, places = places, counts = counts}
    tally.key, tally.index, tally.hashes = tally_keys(base, series, cell)
    if counters > DENSE_LIMIT then
      write_hashes(tally)
    elseif counters > PAGE then
      write_pages(tally)
    else
      write_string(tally)
    end
    call('HINCRBY', base .. ':reports:' .. series, cell, reports)
  end
end

-- A tally as it is kept, for readers and for copies: it is the sum of its string and its pages.

local function delete_pages(key, index, pages_a_byte)
  local states, base = call('GET', index) or '', 2 ^ (8 / pages_a_byte)
  for at = 1, #states do
    local eight = byte(states, at)
    for place = 1, pages_a_byte do
      if floor(eight / base ^ (pages_a_byte - place)) % base ~= ABSENT then
        call('DEL', key .. ':' .. pages_a_byte * (at - 1) + place - 1)
      end
    end
  end
end

local function delete_tally(base, series, cell)
  local key, index, hashes = tally_keys(base, series, cell)
  delete_pages(key, index, PAGES_A_BYTE)
  delete_pages(key, hashes, 8)
  call('DEL', key, index, hashes)
  return key, index, hashes
end

-- Some pages, each as one string: all its counters, or places and counts by turns.
local function read_pages(keys, args)
  local key = tally_keys(keys[1], args[1], args[2])
  local found = {}
  for at, number in ipairs(cmsgpack.unpack(args[3])) do
    local page = key .. ':' .. number
    local kind = call('TYPE', page).ok
    if kind == 'string' then
      found[at] = call('GET', page)
    else
      local entries, held = {}, call('HGETALL', page)
      for place = 1, #held do
        entries[place] = struct.pack('>i8', tonumber(held[place]))
      end
      found[at] = table.concat(entries)
    end
  end
  return found
end

-- Another store's tally in place of the one that stands here; without any, none stands here then.
local function import_tally(base, series, cell, packed)
  local reports, counters, whole, given = unpack(cmsgpack.unpack(packed))
  local key, index, hashes = delete_tally(base, series, cell)
  call('SADD', base .. ':series', series)
  if reports == 0 then
    call('HDEL', base .. ':reports:' .. series, cell)
    return 1
  end
  call('HSET', base .. ':reports:' .. series, cell, string.format('%.0f', reports))
  if #whole > 0 then
    call('SET', key, whole)
  end
  local states = {'SET', 'u2', '#' .. PAGES_A_BYTE * index_bytes(counters) - 1, 0} -- of no hashes
  for _, page in ipairs(given) do
    local number, body = unpack(page)
    local state = type(body) == 'string' and WHOLE_PAGE or PACKED_PAGE
    if state == WHOLE_PAGE then
      call('SET', key .. ':' .. number, body)
    else
      call_in_parts('HSET', key .. ':' .. number, body)
    end
    states[#states + 1] = 'SET'
    states[#states + 1] = 'u2'
    states[#states + 1] = '#' .. number
    states[#states + 1] = state
    if counters > DENSE_LIMIT then
      call('SETBIT', hashes, number, 1)
    end
  end
  if #given > 0 and counters <= DENSE_LIMIT then
    call_in_parts('BITFIELD', index, states)
  end
  return 1
end
