#!lua
for i = 3, #ARGV, 2 do
  redis.call('HSET', prefix .. 'token:' .. ARGV[2], ARGV[i], ARGV[i + 1])
end
