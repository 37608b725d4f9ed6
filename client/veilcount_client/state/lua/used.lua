#!lua flags=no-writes
local person = person_of(ARGV[2])
local at = person and find(person.used, 6, id_of(ARGV[3]))
if not at then return {-1, 0} end
local _, period, answers = struct.unpack('>HHH', person.used, at)
return {period, answers}
