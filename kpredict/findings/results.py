"""What a check comes to: the findings to show, and what else was noticed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from kpredict.findings.check import Checked
from kpredict.findings.finding import Finding
from kpredict.model import Target


@dataclass(frozen=True, slots=True)
class Results:
    """`findings` are new ones; those of a baseline are only counted. `errors` are files that could
    not be read."""

    target: Target
    findings: tuple[Finding, ...] = ()
    errors: tuple[Checked, ...] = ()
    files: int = 0
    suppressed: int = 0
    known: int = 0
    notes: tuple[str, ...] = ()

    @property
    def by_code(self) -> Counter[str]:
        return Counter(f.code for f in self.findings)

    @property
    def worst_first(self) -> list[Finding]:
        return sorted(self.findings, key=lambda f: (*(-w for w in f.weight), f))

    @property
    def sentence(self) -> str:
        """The answer in one line."""
        if not self.findings:
            said = f"nothing found in {self.files} file{_s(self.files)}"
        else:
            n = len(self.findings)
            codes = ", ".join(f"{c} x {k}" for c, k in sorted(self.by_code.items()))
            said = f"{n} finding{_s(n)} in {self.files} file{_s(self.files)}: {codes}"
        extra = [f"{self.known} in the baseline"] if self.known else []
        extra += [f"{self.suppressed} suppressed"] if self.suppressed else []
        extra += [f"{len(self.errors)} not read"] if self.errors else []
        tail = f" ({', '.join(extra)})" if extra else ""
        return f"{said}{tail}; target {self.target.name}, torch {self.target.torch}"


def gather(
    target: Target, checked: Iterable[Checked], findings: Iterable[Finding], known: int = 0,
    notes: Iterable[str] = (),
) -> Results:  # fmt: skip
    listed = list(checked)
    return Results(
        target, tuple(findings), tuple(c for c in listed if c.error), len(listed),
        sum(c.suppressed for c in listed), known,
        (*notes, *(fault for c in listed for fault in c.faults)),
    )  # fmt: skip


def _s(n: int) -> str:
    return "" if n == 1 else "s"
