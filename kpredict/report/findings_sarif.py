"""Findings as SARIF 2.1.0, for code scanning.

Fingerprints are of code, path and qualified name, with a number where there are several: not of
lines, so that a result keeps its identity when code moves.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from kpredict.findings.finding import Confidence, Finding
from kpredict.findings.registry import rules
from kpredict.findings.results import Results

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
HELP = "https://pypi.org/project/torch-kpredict/"
LEVELS = {"KP4": "error"}


def level(code: str) -> str:
    return next((v for k, v in LEVELS.items() if code.startswith(k) and code != "KP491"), "warning")


def render(results: Results, version: str) -> str:
    codes = sorted({f.code for f in results.findings})
    seen: Counter[tuple[str, str, str]] = Counter()
    rows = []
    for f in results.findings:
        seen[f.key] += 1
        rows.append(_result(f, codes.index(f.code), seen[f.key]))
    notices = [
        {
            "level": "error", "message": {"text": c.error},
            "locations": [_at(c.path, {"startLine": c.line} if c.line else None)],
        }
        for c in results.errors
    ] + [{"level": "note", "message": {"text": note}} for note in results.notes]  # fmt: skip
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "kpredict", "version": version, "informationUri": HELP,
                "rules": [_rule(code) for code in codes],
            }
        },
        "results": rows,
        "columnKind": "utf16CodeUnits",
        "invocations": [
            {"executionSuccessful": not results.errors, "toolExecutionNotifications": notices}
        ],
    }  # fmt: skip
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(code: str) -> dict[str, Any]:
    rule = rules()[code]
    return {
        "id": code, "name": "".join(w.capitalize() for w in rule.name.split("-")),
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.part("What it means") or rule.summary},
        "help": {"text": rule.doc, "markdown": rule.doc}, "helpUri": HELP,
        "defaultConfiguration": {"level": level(code)},
    }  # fmt: skip


def _result(f: Finding, index: int, number: int) -> dict[str, Any]:
    """One result. A notebook's lines are of its cell, so the message names the cell."""
    region: dict[str, Any] = {"startLine": f.line, "startColumn": f.column}
    if f.end_line is not None and f.end_line > f.line:
        region["endLine"] = f.end_line
    mark = hashlib.sha256("\0".join([*f.key, str(number)]).encode()).hexdigest()[:32]
    return {
        "ruleId": f.code, "ruleIndex": index, "level": level(f.code),
        "message": {
            "text": f"{f.name}: {f.message}" + (f" (cell {f.cell})" if f.cell is not None else "")
        },
        "locations": [
            {
                **_at(f.path, region),
                "logicalLocations": [{"fullyQualifiedName": f.function or "<module>"}],
            }
        ],
        "partialFingerprints": {"kpredict/v1": mark},
        "rank": {Confidence.CERTAIN: 90.0, Confidence.LIKELY: 60.0}.get(f.confidence, 30.0),
    }  # fmt: skip


def _at(path: str, region: dict[str, Any] | None) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": _uri(path)}}
    return {"physicalLocation": place | ({"region": region} if region else {})}


def _uri(path: str) -> str:
    """Relative paths stay so, as code scanning wants them; absolute ones become file URIs."""
    plain = PurePath(path)
    return plain.as_uri() if plain.is_absolute() else quote(plain.as_posix())
