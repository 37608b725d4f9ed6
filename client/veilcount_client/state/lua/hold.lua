#!lua
local result = remembered_result()
if result then return result end
local key, series, old, new, due, round =
  ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], tonumber(ARGV[8])
if (redis.call('HGET', prefix .. 'held:' .. key, series) or '') ~= old then return remember_result('0') end
local entries = get('coverage:', key) or ''
if not agrees(person_of(key), entries, id_of(series), round) then return remember_result('0') end
put_held(key, series, new, due)
return remember_result('1')
