#!lua
local result = remembered_result()
if result then return result end
local key, series, old, new, due = ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
if (redis.call('HGET', prefix .. 'held:' .. key, series) or '') ~= old then return remember_result('0') end
local who = person_of(key)
if not who or who.consented ~= 1 then return remember_result('0') end
put_held(key, series, new, due)
return remember_result('1')
