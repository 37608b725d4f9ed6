-- What wrk sends: bodies from a file, all of one length, each once; then it stops.
-- wrk -s load.lua URL -- FILE HEAD_LENGTH SIZE ID_AT   (the file: a request's head, then bodies)
-- ID_AT: after how many bytes of the head come twelve digits that differ by request; 0: none do

local threads = {}

function setup(thread)
  threads[#threads + 1] = thread
end

function init(arguments)
  file = assert(io.open(arguments[1], 'rb'))
  head, size = file:read(tonumber(arguments[2])), tonumber(arguments[3])
  before, after = head, ''
  id_at = tonumber(arguments[4])
  if id_at > 0 then
    before, after = head:sub(1, id_at), head:sub(id_at + 13)
  end
  sent = 0
end

function request()
  local body = file:read(size)
  if not body then
    wrk.thread:stop()
    return last
  end
  sent = sent + 1
  local id = id_at > 0 and string.format('%012x', sent) or ''
  last = before .. id .. after .. body
  return last
end

function done(summary, latency)
  local errors = summary.errors
  print(string.format(
    'figures {"answered": %d, "sent": %d, "refused": %d, "broken": %d, "p99": %d, "seconds": %f}',
    summary.requests, threads[1]:get('sent'), errors.status,
    errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(99), summary.duration / 1e6))
end
