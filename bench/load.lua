-- What wrk sends: bodies from a file, all of one length, each once; then it stops.
-- wrk -s load.lua URL -- FILE HEAD_LENGTH SIZE   (the file: a request's head, then bodies)

local threads = {}

function setup(thread)
  threads[#threads + 1] = thread
end

function init(arguments)
  file = assert(io.open(arguments[1], 'rb'))
  head, size = file:read(tonumber(arguments[2])), tonumber(arguments[3])
  sent = 0
end

function request()
  local body = file:read(size)
  if not body then
    wrk.thread:stop()
    return last
  end
  sent = sent + 1
  last = head .. body
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
