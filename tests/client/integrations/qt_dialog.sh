#!/bin/sh
# Test the Qt dialog by each binding, in an environment that is thrown away: a binding is 246 MB, so
# it is no dependency of the tests. Run it with the tests' interpreter in PATH: sh qt_dialog.sh
set -eu
root=$(cd "$(dirname "$0")/../../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python -m venv "$folder"
"$folder/bin/python" -m pip --quiet install PySide6-Essentials PyQt6
packages=$("$folder/bin/python" -c "import sysconfig; print(sysconfig.get_path('purelib'))")
"$folder/bin/python" -m pip list 2>/dev/null | grep -i "^py\(side\|qt\)"
cd "$root"
PYTHONPATH="${PYTHONPATH:-}:$packages" python -m pytest -q -rs tests/client/integrations/test_qt.py
