"""A baseline: findings that were there before, and are let pass until they go away.

Keyed by path, qualified function name and code, with a count; never by a line, so that moving code
does not bring findings back. It only shrinks: an update never adds to it, unless it is made anew.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kpredict.findings.finding import Finding
from kpredict.model import KpredictError

Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Baseline:
    counts: Counter[Key] = field(default_factory=Counter)

    def split(self, findings: Sequence[Finding]) -> tuple[list[Finding], list[Finding]]:
        """(new, known) findings: of each key, as many as were there before are known."""
        left = Counter(self.counts)
        new: list[Finding] = []
        known: list[Finding] = []
        for f in findings:
            if left[f.key] > 0:
                left[f.key] -= 1
                known.append(f)
            else:
                new.append(f)
        return new, known

    def shrunk(self, findings: Sequence[Finding]) -> Baseline:
        """What is left of it: never more of a key than before."""
        now = Counter(f.key for f in findings)
        return Baseline(Counter({k: min(n, now[k]) for k, n in self.counts.items() if now[k]}))

    @property
    def total(self) -> int:
        return sum(self.counts.values())


def load(path: Path) -> Baseline:
    """Raises KpredictError for a file that is no baseline."""
    try:
        data = json.loads(path.read_text("utf-8"))
        rows = data["findings"]
        return Baseline(
            Counter({(r["path"], r["function"], r["code"]): int(r["count"]) for r in rows})
        )
    except OSError as error:
        raise KpredictError(
            f"The baseline {path} cannot be read: {error.strerror}.",
            "Make one with --update-baseline.",
        ) from None
    except (ValueError, KeyError, TypeError):
        raise KpredictError(f"{path} is not a baseline of kpredict.") from None


def of(findings: Sequence[Finding]) -> Baseline:
    return Baseline(Counter(f.key for f in findings))


def save(path: Path, baseline: Baseline) -> None:
    rows = [{"path": p, "function": f, "code": c, "count": n}
            for (p, f, c), n in sorted(baseline.counts.items())]  # fmt: skip
    path.write_text(json.dumps({"version": 1, "findings": rows}, indent=1) + "\n", "utf-8")
