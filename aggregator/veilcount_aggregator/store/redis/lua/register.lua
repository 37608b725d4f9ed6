-- The functions of the library. What only frees memory or closes works without free memory too.

local function register(name, work, ...)
  local function enter(keys, args)
    call, floor = redis.call, math.floor
    byte, char, sub, rep = string.byte, string.char, string.sub, string.rep
    return work(keys, args)
  end
  redis.register_function{function_name = LIBRARY .. '_' .. name, callback = enter, flags = {...}}
end

register('commit', raising(commit))
register('import_rows', guarded(import_rows))
register('import_tally', guarded(import_tally))
register('change_records', raising(change_records))
register('change_record', raising(change_record))
register('import_records', guarded(import_records))
register('change_batch', raising(change_batch))
register('close_row', raising(close_row), 'allow-oom')
register('accept', accept, 'allow-oom')
register('mark_dropped', guarded(mark_dropped), 'allow-oom')
register('restore_dropped', guarded(restore_dropped), 'allow-oom')
register('give_up_dropped', guarded(give_up_dropped), 'allow-oom')
register('delete_rows', guarded(delete_rows), 'allow-oom')
register('forget_tokens', guarded(forget_tokens), 'allow-oom')
register('set_read_only', set_read_only, 'allow-oom')
register('read_rows', read_rows, 'no-writes')
register('read_pages', read_pages, 'no-writes')
register('incarnation', incarnation, 'no-writes')
register('identity', identity, 'no-writes')
register('create_identity', create_identity)
