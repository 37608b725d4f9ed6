"""The analysis pool: processes that compute what analysts ask, one request each at a time.

`supervisor` runs in the server's parent and keeps them running; `process` is one of them; `client`
is in the HTTP workers; `places` is what all share.
"""
