"""What `./dev load` starts. The run itself is `python -m loadtests`, from the folder above."""

import runpy
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])
runpy.run_module("loadtests", run_name="__main__", alter_sys=True)
