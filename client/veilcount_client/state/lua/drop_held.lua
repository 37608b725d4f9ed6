#!lua flags=allow-oom
if redis.call('HGET', prefix .. 'held:' .. ARGV[2], ARGV[3]) == ARGV[4] then
  drop_held(ARGV[2], ARGV[3])
end
