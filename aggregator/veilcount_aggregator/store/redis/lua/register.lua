-- The doors. What only frees or closes works while memory is out, too.

local function door(name, work, ...)
  local function enter(keys, args)
    call, floor = redis.call, math.floor
    byte, char, sub, rep = string.byte, string.char, string.sub, string.rep
    return work(keys, args)
  end
  redis.register_function{function_name = LIBRARY .. '_' .. name, callback = enter, flags = {...}}
end

door('commit', guarded(commit))
door('settle', guarded(settle))
door('place', guarded(place_tally))
door('change', guarded(change))
door('shelve', guarded(shelve))
door('forget', guarded(forget), 'allow-oom')
door('drop', guarded(drop), 'allow-oom')
door('restore', guarded(restore), 'allow-oom')
door('expire', guarded(expire), 'allow-oom')
door('sweep', guarded(sweep), 'allow-oom')
door('fence', fence, 'allow-oom')
door('rows', rows, 'no-writes')
door('pages', pages, 'no-writes')
door('measure', measured, 'no-writes')
door('incarnation', incarnation, 'no-writes')
door('root', root)
