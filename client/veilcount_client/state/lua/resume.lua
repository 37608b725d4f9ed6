#!lua flags=allow-oom
local id, now = id_of(ARGV[4]), tonumber(ARGV[5])
for bucket = tonumber(ARGV[2]), tonumber(ARGV[3]) do
  local first = string.char(bit.rshift(bucket, 4))
  for _, field in ipairs(redis.call('HKEYS', prefix .. 'coverage:' .. bucket)) do
    change_coverage(first .. field, id, function(since, resumed, is_current, round)
      return since, math.max(resumed, now), is_current, round + 1
    end)
  end
end
