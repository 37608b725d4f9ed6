"""The store in Redis: one server, or a cluster."""

from .engine import RedisEngine as RedisEngine
