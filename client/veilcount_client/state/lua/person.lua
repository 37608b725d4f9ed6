#!lua flags=no-writes
local person = person_of(ARGV[2])
if not person then return false end
local names = {}
for at = 1, #person.covered, 2 do
  names[#names + 1] = name_of(struct.unpack('>H', person.covered, at))
end
return {person.consented, struct.pack('>d', person.since), person.salt, names}
