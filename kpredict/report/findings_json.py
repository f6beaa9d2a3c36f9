"""Findings as JSON; `findings.schema.json` beside this file is its schema."""

from __future__ import annotations

import json
from dataclasses import asdict

from kpredict.findings.results import Results

SCHEMA_VERSION = 1


def render(results: Results, version: str) -> str:
    data = {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "kpredict", "version": version},
        "target": {"name": results.target.name, "torch": results.target.torch},
        "findings": [asdict(f) for f in results.findings],
        "notes": list(results.notes),
        "errors": [{"path": c.path, "line": c.line, "message": c.error} for c in results.errors],
        "summary": {
            "files": results.files, "findings": len(results.findings),
            "suppressed": results.suppressed, "baseline": results.known,
            "by_code": dict(sorted(results.by_code.items())),
        },
    }  # fmt: skip
    return json.dumps(data, indent=2) + "\n"
