"""Put plotly.js, which draws the dashboard's charts, into the wheel.

The pages need one file of the Python package plotly, and nothing else of it. So plotly is needed
where a wheel is built or the source is run, and not where the wheel is installed.
"""

from __future__ import annotations

import gzip
from importlib.metadata import distribution
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_SCRIPT = "plotly/package_data/plotly.min.js"
_STATIC = "veilcount_aggregator/web/dashboard/static"


class PlotlyHook(BuildHookInterface[Any]):
    """Adds the script, packed, and its license; an editable install reads plotly's own."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files to what the wheel holds."""
        if version == "editable":
            return
        plotly = distribution("plotly")
        (terms,) = (each for each in plotly.files or () if each.name == "LICENSE.txt")
        script = Path(str(plotly.locate_file(_SCRIPT)))
        self.folder = TemporaryDirectory()
        packed = Path(self.folder.name, f"{script.name}.gz")
        packed.write_bytes(gzip.compress(script.read_bytes(), mtime=0))
        build_data["force_include"] |= {
            str(packed): f"{_STATIC}/{packed.name}",
            str(plotly.locate_file(terms)): f"{_STATIC}/plotly.LICENSE.txt",
        }

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was packed."""
        if version != "editable":
            self.folder.cleanup()
