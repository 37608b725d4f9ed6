"""The store in Redis: one server, or a cluster."""

from .store import open_redis as open_redis
