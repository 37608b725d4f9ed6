#!lua flags=no-writes
local entries = get('coverage:', ARGV[2]) or ''
return agrees(person_of(ARGV[2]), entries, id_of(ARGV[3]), tonumber(ARGV[4])) and 1 or 0
