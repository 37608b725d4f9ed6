#!lua flags=allow-oom
if remembered_result() then return end
local unsent = tonumber(ARGV[3])
for i = 4, #ARGV, 2 do
  local number, due = ARGV[i], tonumber(ARGV[i + 1])
  if redis.call('ZSCORE', prefix .. 'due', member(number)) then
    local _, _, tries = turn_of(number)
    put_turn(number, 0, due, math.max(tries - unsent, 0))
  end
end
remember_result('')
