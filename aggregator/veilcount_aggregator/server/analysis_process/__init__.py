"""The analysis process: where a server answers everything that is not a device's or a probe's.

`supervisor` runs in the server's parent and keeps one such process alive; `process` is what it
runs; `forwarding` is the worker's side; `frames` is what they say to each other over a socket.
"""
