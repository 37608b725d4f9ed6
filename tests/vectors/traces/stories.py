"""A list of stories, each its reason in its docstring: what happens to a device, event by event."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from ..trace_story import Story, seed_with

EVENT = {"unit": "event", "linkage": "collection"}
LAST = {"takes": "last", "held": "device"}


class Stories(list[Callable[[], Story]]):
    """Stories in the order in which a module has them."""

    def trace(
        self,
        name: str,
        *,
        fits: Callable[[Story], bool] | None = None,
        begun: bool = True,
        **tables: Mapping[str, object],
    ) -> Callable[[Callable[[Story], object]], None]:
        """Add a story, its reason in its docstring; `fits`: its secret is the first that does."""

        def build(why: str, events: Callable[[Story], object], seed: str = "") -> Story:
            story = Story(name, why, tables, seed=seed)
            if begun:
                story.begin(0, 8)
            events(story)
            return story

        def add(events: Callable[[Story], object]) -> None:
            words = " ".join((events.__doc__ or "").split()).removesuffix(".")
            build_with = partial(build, words[0].lower() + words[1:], events)
            self.append(partial(seed_with, build_with, fits) if fits else build_with)

        return add
