#!lua
if remembered_result() then return end
for i = 3, #ARGV, 2 do
  redis.call('HINCRBY', prefix .. 'loss', ARGV[i], ARGV[i + 1])
end
remember_result('')
