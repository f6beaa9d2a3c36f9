"""The rules, by discovery: a file `kpNNN_name.py` under `rules/` is a rule.

Such a file has a docstring in five parts, `check(file)`, and its examples `BAD` and `GOOD`, which
are its tests. Refuses at import what is incomplete. A plugin adds rules with `finding_rule`.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from inspect import cleandoc
from types import MappingProxyType, ModuleType

from kpredict.findings.finding import Finding
from kpredict.findings.reading import File
from kpredict.model import KpredictError

PARTS = ("What it means", "Why it costs", "Example", "Instead", "How it is counted")
Check = Callable[[File], Iterable[Finding]]

FAMILIES: Mapping[str, str] = MappingProxyType(
    {
        "KP1": "launches", "KP2": "round trips", "KP3": "syncs and graph breaks",
        "KP4": "budgets and suppressions", "KP9": "limits of the analysis",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rule:
    """One code. `default` says whether it is on without being selected."""

    code: str
    name: str
    doc: str
    check: Check
    bad: tuple[str, ...]
    good: tuple[str, ...]
    default: bool

    @property
    def summary(self) -> str:
        """The first line of its docstring."""
        return self.doc.splitlines()[0]

    @property
    def stem(self) -> str:
        """What `File.finding` is given: `kp101_pointwise_chain`."""
        return f"{self.code}_{self.name}".lower().replace("-", "_")

    def part(self, title: str) -> str:
        """One part of the docstring, without its title."""
        titles = "|".join(map(re.escape, PARTS))
        found = re.search(
            rf"^{re.escape(title)}\n-+\n(.*?)(?=^(?:{titles})\n-+\n|\Z)", self.doc, re.M | re.S
        )
        return found.group(1).strip() if found else ""


def _rule(module: ModuleType) -> Rule:
    stem = module.__name__.rsplit(".", 1)[-1]
    number, _, name = stem.partition("_")
    rule = Rule(
        number.upper(), name.replace("_", "-"), (module.__doc__ or "").strip(), module.check,
        tuple(module.BAD), tuple(module.GOOD), getattr(module, "DEFAULT", True),
    )  # fmt: skip
    missing = [p for p in PARTS if not rule.part(p)]
    if missing:
        raise ValueError(f"{stem}: the docstring lacks {', '.join(missing)}")
    return rule


_of_plugins: dict[str, Rule] = {}


def finding_rule(check: Check) -> Check:
    """`@kpredict.finding_rule`: a finding of the user's own, in a plugin.

    The function's name is its code and name, `my101_no_sin`: two or more letters other than KP and
    three digits. It is given a File and yields `file.finding("my101_no_sin", place, message)`; its
    docstring is what `kpredict explain MY101` prints. Raises KpredictError for another name.
    """
    stem = check.__name__
    number, _, name = stem.partition("_")
    doc = cleandoc(check.__doc__ or "")
    if not re.fullmatch(r"[a-z]{2,}\d{3}", number) or not name or number.startswith("kp"):
        raise KpredictError(
            f"{stem} is no name for a finding's rule.",
            "Write a code and a name, such as my101_no_sin; KP is taken.",
        )
    if not doc:
        raise KpredictError(f"The rule {stem} has no docstring.", "Say in a line what it means.")
    rule = Rule(number.upper(), name.replace("_", "-"), doc, check, (), (), True)
    if rule.code in _of_plugins:
        raise KpredictError(f"Two rules are called {rule.code}.", "Give one another number.")
    _of_plugins[rule.code] = rule
    return check


def rules() -> Mapping[str, Rule]:
    """Every rule by code, ours first, then those of plugins."""
    return MappingProxyType({**own_rules(), **_of_plugins}) if _of_plugins else own_rules()


@cache
def own_rules() -> Mapping[str, Rule]:
    """Our own rules by code, in order."""
    package = importlib.import_module("kpredict.findings.rules")
    found: dict[str, Rule] = {}
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda m: m.name):
        if not re.fullmatch(r"kp\d{3}_\w+", info.name):
            continue
        rule = _rule(importlib.import_module(f"{package.__name__}.{info.name}"))
        if rule.code in found:
            raise ValueError(f"two rules are called {rule.code}")
        found[rule.code] = rule
    return MappingProxyType(found)


def selected(select: Iterable[str], ignore: Iterable[str]) -> list[Rule]:
    """The rules that prefixes choose; without `select`, those that are on by default.

    The longer prefix wins: `select KP1, ignore KP101` and `select KP101, ignore KP1` both do what
    they say.
    """
    chosen = []
    wanted, unwanted = tuple(select), tuple(ignore)
    for rule in rules().values():
        on = max(
            (len(p) for p in wanted if rule.code.startswith(p.upper()) or p.upper() == "ALL"),
            default=0,
        )
        off = max((len(p) for p in unwanted if rule.code.startswith(p.upper())), default=0)
        if not wanted and rule.default:
            on = 1
        if on > off:
            chosen.append(rule)
    return chosen
