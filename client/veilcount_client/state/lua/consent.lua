#!lua flags=allow-oom
local key, consented, now = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local person = person_of(key) or {consented = 0, salt = ARGV[5], declined = '', used = ''}

-- Four lists, each after its length: covered (series, resumed if new, if returning), withdrawn,
-- declined, lifted.
local at = 6
local function next_list()
  local first, last = at + 1, at + tonumber(ARGV[at])
  at = last + 1
  return first, last
end

local first_covered, last_covered = next_list()
local first_withdrawn, last_withdrawn = next_list()
local first_declined, last_declined = next_list()
local first_lifted, last_lifted = next_list()

for i = first_declined, last_declined do
  local id = new_id(ARGV[i])
  person.declined = replaced(person.declined, 2, id, struct.pack('>H', id))
end
for i = first_lifted, last_lifted do
  person.declined = replaced(person.declined, 2, id_of(ARGV[i]), '')
end
if consented ~= 0 then person.consented = consented end
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
    -- No instant is left behind that lies ahead: a clock was, and is set right.
    change_coverage(key, id, function(since, resumed, is_current, round)
      resumed = is_current == 1 and resumed or math.max(resumed, if_returning)
      return math.min(since, now), math.min(resumed, now), 1, round
    end)
  else
    put('coverage:', key, entries .. struct.pack('>HddBI4', id, now, if_new, 1, 0))
  end
end
