#!lua flags=allow-oom
for i = 2, #ARGV, 2 do
  redis.call('ZADD', prefix .. 'row_close', 'XX', ARGV[i + 1], ARGV[i])
end
