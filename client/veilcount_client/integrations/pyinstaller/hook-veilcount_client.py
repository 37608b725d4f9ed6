"""Run by PyInstaller when an app imports veilcount_client; the name is PyInstaller's."""

from __future__ import annotations

from PyInstaller.utils.hooks import collect_data_files

datas = collect_data_files("veilcount_client")
