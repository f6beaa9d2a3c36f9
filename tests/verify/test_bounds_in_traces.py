"""No kernel of a real trace is faster than the bound of its op call."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_bert_on_an_h100_beats_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import bounds

    rows = list(bounds.rows(ROOT / "fixtures" / "traces" / "tracelens_bert_small_h100.json.gz"))
    assert len(rows) == 60
    assert {row.limit for row in rows} <= {"memory", "compute"}
    assert not [row for row in rows if row.beaten]
    assert all(row.bound > 0 for row in rows)
