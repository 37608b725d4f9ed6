#!lua
local person = person_of(ARGV[2])
if not person or person.salt ~= ARGV[3] then return end
for i = 4, #ARGV, 2 do
  redis.call('HSET', prefix .. 'token:' .. ARGV[2], ARGV[i], ARGV[i + 1])
end
