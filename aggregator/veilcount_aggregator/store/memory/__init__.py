"""The store in the memory of one process: the model that the other engines are compared with."""

from .engine import MemoryEngine as MemoryEngine
