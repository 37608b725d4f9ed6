#!lua flags=allow-oom
local key, series, through = ARGV[2], new_id(ARGV[3]), tonumber(ARGV[4])
local person = person_of(key)
if not person then return end
local at, last, _ = find(person.used, 6, series), -1
if at then _, last = struct.unpack('>HH', person.used, at) end
if last <= through then
  person.used = replaced(person.used, 6, series, struct.pack('>HHH', series, through, ROW_CLOSED))
  put_person(key, person)
end
