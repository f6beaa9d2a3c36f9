"""What a check is asked: rules, thresholds, budgets. Made from the configuration and the flags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kpredict.findings.reading import Limits
from kpredict.findings.registry import Rule, selected
from kpredict.model import Target
from kpredict.source.infer.counting import default_target


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that one entry may take; None: no limit."""

    max_eager: int | None = None
    max_compiled: int | None = None
    max_round_trips: int | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """`budgets` are keyed by "path::name", or by "name" for every file."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    target: Target = field(default_factory=default_target)
    budgets: Mapping[str, Budget] = field(default_factory=dict)
    plugins: str = ""  # changes when the code of the user's rules does

    @property
    def rules(self) -> list[Rule]:
        return selected(self.select, self.ignore)

    @property
    def fingerprint(self) -> str:
        """Two checks with the same fingerprint find the same in the same file."""
        return repr((self.select, self.ignore, self.limits, self.target.name, self.target.torch,
                     sorted(self.budgets.items(), key=lambda kv: kv[0]), self.plugins))  # fmt: skip
