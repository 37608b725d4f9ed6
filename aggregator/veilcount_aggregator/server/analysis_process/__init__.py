"""The analysis process, which serves all requests except those of devices and probes.

`supervisor` runs in the server's parent and keeps the process alive; `worker` is the process; in
the HTTP workers is `forwarding`; `frames` is the protocol on the socket between them.
"""
