#!lua flags=allow-oom
local key, consented, now = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local person = person_of(key) or {salt = ARGV[5], used = ''}

-- Three lists, each after its length: covered (series, resumed if new, if returning), withdrawn,
-- declined.
local at = 6
local function next_list()
  local first, last = at + 1, at + tonumber(ARGV[at])
  at = last + 1
  return first, last
end

local first_covered, last_covered = next_list()
local first_withdrawn, last_withdrawn = next_list()
local first_declined, last_declined = next_list()

local declined = {}
for i = first_declined, last_declined do
  declined[#declined + 1] = struct.pack('>H', new_id(ARGV[i]))
end
person.declined = table.concat(declined)
person.consented = consented
put_person(key, person)

local function wipe(series)
  for _, number in ipairs(redis.call('SMEMBERS', prefix .. 'waiting:' .. key)) do
    local id = struct.unpack('>H', entry_of(number), 23)
    if series == nil or id == id_of(series) then take_off(number) end
  end
  if series then drop_held(key, series) else drop_all_held(key) end
  withdraw(key, series and id_of(series))
end

if consented == 2 then wipe() end
for i = first_withdrawn, last_withdrawn do wipe(ARGV[i]) end

for i = first_covered, last_covered, 3 do
  local id, if_new, if_returning = new_id(ARGV[i]), tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  local entries = get('coverage:', key) or ''
  if find(entries, COVERED, id) then
    change_coverage(key, function(series, resumed, is_current)
      if series ~= id then return resumed, is_current end
      return is_current == 1 and resumed or math.max(resumed, if_returning), 1
    end)
  else
    put('coverage:', key, entries .. struct.pack('>HddB', id, now, if_new, 1))
  end
end
