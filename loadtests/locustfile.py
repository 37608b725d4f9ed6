"""What locust runs: devices of a prepared run of `./dev load`, or else devices for any server.

    locust -f loadtests/locustfile.py --host URL

`VEILCOUNT_KEY` is an analyst's key, by which the definitions are fetched; `VEILCOUNT_DEVICE_KEY` a
device's, if the intake requires one.
"""

import os
import sys
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `locust` alone does not search it

from loadtests.ipc import FOLDER

Device = import_module(
    "loadtests.prepared_devices" if FOLDER in os.environ else "loadtests.generic_devices"
).Device
