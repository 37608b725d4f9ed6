#!lua flags=no-writes
return redis.call('HGET', prefix .. ARGV[2] .. ARGV[3], ARGV[4])
