"""The store in Redis: one server, or a cluster."""

from .engine import open_redis as open_redis
