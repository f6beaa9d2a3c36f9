"""Comparison ↔ JSON, in the shape of `comparison.schema.json`: a whole report for each point."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from kpredict.model import Comparison, KpredictError, Mode, Report, Turn
from kpredict.report import json as report_json
from kpredict.report.load import from_document


def render(found: Comparison, version: str = "", indent: int | None = None) -> str:
    return json.dumps(document(found, version), indent=indent)


def document(found: Comparison, version: str = "") -> dict[str, Any]:
    """The comparison as plain dicts and lists."""
    return {
        "schema_version": report_json.SCHEMA_VERSION,
        "tool": {"name": "kpredict", "version": version},
        "varied": found.varied,
        "points": [
            {"at": label if found.varied == "target" else int(label),
             "report": report_json.document(report, version)}
            for label, report in found.points
        ],
        "turns": [asdict(turn) for turn in found.turns],
    }  # fmt: skip


def load(data: Mapping[str, Any], where: str) -> Comparison:
    """The comparison that `document` wrote. Raises KpredictError for anything else."""
    try:
        points = tuple((str(p["at"]), from_document(p["report"], where)) for p in data["points"])
        turns = tuple(Turn(**{**t, "mode": Mode(t["mode"])}) for t in data.get("turns", ()))
        return Comparison(data["varied"], points, turns)
    except (KeyError, TypeError, ValueError) as error:
        raise KpredictError(f"{where} is damaged: {type(error).__name__}: {error}.") from None


def read(text: str, where: str) -> Report | Comparison:
    """Whatever kpredict has saved as JSON. Raises KpredictError for other text."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise KpredictError(f"{where} is not JSON: {error}.") from None
    if isinstance(data, dict) and "points" in data and "varied" in data:
        return load(data, where)
    return from_document(data, where)
