"""A software bill of materials, as CycloneDX 1.6 has it: the same lock gives the same bill."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from .licences import licence
from .lock import PROJECT, Pinned

SPECIFICATION = "1.6"


def bill(parts: Sequence[Pinned]) -> dict[str, Any]:
    """Return the bill of all parts, and who needs whom."""
    ours = {"type": "application", "bom-ref": PROJECT, "name": PROJECT, "version": version(PROJECT)}
    name = ";".join(part.purl for part in parts)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": SPECIFICATION,
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, name)}",
        "version": 1,
        "metadata": {"component": ours},
        "components": [_component(part) for part in parts],
        "dependencies": _dependencies(parts),
    }


def _component(part: Pinned) -> dict[str, Any]:
    terms = licence(part.name)
    return {
        "type": "library",
        "bom-ref": part.purl,
        "name": part.name,
        "version": part.version,
        "purl": part.purl,
        "scope": "excluded" if part.developing else "required",
        # one for each file that may be installed: which one depends on the machine
        "hashes": [{"alg": "SHA-256", "content": each} for each in part.hashes],
    } | ({"licenses": [{"license": {"name": terms}}]} if terms else {})


def _dependencies(parts: Sequence[Pinned]) -> list[dict[str, Any]]:
    refs = {part.name: part.purl for part in parts} | {PROJECT: PROJECT}
    needs: dict[str, list[str]] = {ref: [] for ref in refs.values()}
    for part in parts:
        for by in part.because:
            needs[refs[by]].append(part.purl)
    return [{"ref": ref, "dependsOn": sorted(set(on))} for ref, on in needs.items()]
