#!lua flags=no-writes
return redis.call('HGET', prefix .. 'token:' .. ARGV[2], ARGV[3])
