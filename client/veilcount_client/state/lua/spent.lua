#!lua flags=no-writes
local ledger, rows = get('ledger:', ARGV[2]) or '', {}
for at = 1, #ledger, 22 do
  local id, life, first_day, end_day, spent = struct.unpack('>HI6I4I4I6', ledger, at)
  rows[#rows + 1] = {name_of(id), life, first_day, end_day, spent}
end
return rows
