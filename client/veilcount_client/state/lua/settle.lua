#!lua flags=allow-oom
for i = 2, #ARGV, 2 do finish(ARGV[i], ARGV[i + 1]) end
put_pasts()
