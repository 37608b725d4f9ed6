#!lua
if not get('person:', ARGV[2]) then
  put_person(ARGV[2], {consented = 0, salt = ARGV[3], declined = '', used = ''})
end
