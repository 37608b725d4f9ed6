"""A property that is computed once for each instance, without a lock.

That of `functools` has one up to Python 3.11, for all instances: in a child that was forked while
another thread computed one, it stays locked, and the child hangs. Two threads may compute a value
twice here; it is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T_co = TypeVar("T_co", covariant=True)


class cached_property(Generic[T_co]):  # noqa: N801 - as functools spells it
    """The decorator of a method whose result the instance keeps."""

    def __init__(self, compute: Callable[[Any], T_co]) -> None:
        self.func = compute  # named as there
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        """Know the attribute: a value of that name in the instance goes before this."""
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> T_co: ...

    def __get__(self, instance: object | None, owner: type | None = None) -> T_co | Self:
        """Compute the value, at the first access alone."""
        if instance is None:
            return self
        value: T_co = self.func(instance)
        vars(instance)[self._name] = value
        return value
