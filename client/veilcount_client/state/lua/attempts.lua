#!lua flags=no-writes
local most = 0
for _, turn in ipairs(redis.call('HVALS', prefix .. 'turn')) do
  local _, _, tries = struct.unpack('>ddH', turn)
  most = math.max(most, tries)
end
return most
