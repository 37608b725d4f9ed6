#!lua flags=no-writes
local person = person_of(ARGV[2])
if not person then return false end
local declined, coverage, entries = {}, {}, get('coverage:', ARGV[2]) or ''
for at = 1, #person.declined, 2 do
  declined[#declined + 1] = name_of(struct.unpack('>H', person.declined, at))
end
for at = 1, #entries, COVERED do
  coverage[#coverage + 1] = {
    name_of(struct.unpack('>H', entries, at)), string.sub(entries, at + 2, at + COVERED - 1)
  }
end
local moved = redis.call('HGET', prefix .. 'note', 'moved')
return {person.consented, person.salt, declined, coverage, moved}
