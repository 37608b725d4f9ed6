#!lua flags=allow-oom
local key, granted, now = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local person = person_of(key)
  or {since = 0, salt = ARGV[5], used = ''}
local covered = {}
for i = 6, #ARGV do covered[#covered + 1] = struct.pack('>H', new_id(ARGV[i])) end
person.covered = table.concat(covered)
person.consented = granted
if granted == 1 and person.since == 0 then person.since = now end
put_person(key, person)
if granted ~= 1 then
  for _, number in ipairs(redis.call('SMEMBERS', prefix .. 'waiting:' .. key)) do
    take_off(number)
  end
  drop_all_held(key)
end
