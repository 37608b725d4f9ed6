#!lua flags=allow-oom
local key = ARGV[2]
for _, number in ipairs(redis.call('SMEMBERS', prefix .. 'waiting:' .. key)) do take_off(number) end
drop_all_held(key)
redis.call('DEL', prefix .. 'token:' .. key)
withdraw(key)
put('past:', key, '')
put('person:', key, '')
