"""What a check is asked: rules, thresholds, budgets. Made from the configuration and the flags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kpredict.findings.reading import Limits
from kpredict.findings.registry import Rule, selected
from kpredict.model import Target
from kpredict.source.infer.comments import value_of
from kpredict.source.infer.counting import default_target
from kpredict.source.infer.values import Value
from kpredict.source.inputs import join, parse_input


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that one entry may take; None: no limit."""

    max_eager: int | None = None
    max_compiled: int | None = None
    max_round_trips: int | None = None


def is_of(key: str, path: str) -> bool:
    """Whether "file.py::name" is of this file: the file's path from its end."""
    where = key.rpartition("::")[0]
    return bool(where) and (path == where or path.endswith("/" + where))


@dataclass(frozen=True, slots=True)
class Options:
    """`budgets` are keyed by "path::name", or by "name" for every file; `inputs` (texts such as
    "x=f32[64]") by "path::name"."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    target: Target = field(default_factory=default_target)
    budgets: Mapping[str, Budget] = field(default_factory=dict)
    inputs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    plugins: str = ""  # changes when the code of the user's rules does

    def inputs_of(self, path: str) -> dict[str, dict[str, Value]]:
        """What the configuration says the functions of a file are called with, by function. A
        module's name stands for its `forward`. Raises KpredictError for what is no input."""
        out: dict[str, dict[str, Value]] = {}
        for key, texts in self.inputs.items():
            name = key.rpartition("::")[2]
            if texts and is_of(key, path):
                specs = join(parse_input(text) for text in texts)
                values = {word: value_of(spec, {}) for word, spec in specs.items()}
                out[name] = out[f"{name}.forward"] = values
        return out

    @property
    def rules(self) -> list[Rule]:
        return selected(self.select, self.ignore)

    @property
    def fingerprint(self) -> str:
        """Two checks with the same fingerprint find the same in the same file."""
        return repr((self.select, self.ignore, self.limits, self.target.name, self.target.torch,
                     sorted(self.budgets.items(), key=lambda kv: kv[0]),
                     sorted(self.inputs.items()), self.plugins))  # fmt: skip
