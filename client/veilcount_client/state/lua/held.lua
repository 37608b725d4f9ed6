#!lua flags=no-writes
return redis.call('HGET', prefix .. 'held:' .. ARGV[2], ARGV[3])
