"""The rule registry: which function says what one ATen op launches.

Look-up order: the user's own rule; our rule for the overload, else for all overloads
(`aten.sum.dim_IntList`, `aten.sum`); for an in-place or `.out` op the rule of its functional form;
torch's own tag (basis `assumed`); else unknown. A duplicate key is an error at import.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from kpredict.model import Basis, KpredictError, Launch, Op, Target, tensors_in

RuleFunction = Callable[[Op, Target], Iterable[Launch]]


@dataclass(frozen=True, slots=True)
class Rule:
    """What `kpredict ops` lists: a key, the function, its basis, and where the rule comes from."""

    key: str
    function: RuleFunction
    basis: Basis
    source: str
    origin: str

    @property
    def doc(self) -> str:
        return (self.function.__doc__ or "").strip()


_rules: dict[str, Rule] = {}
_user_rules: dict[str, Rule] = {}


def rule(
    *keys: str, source: str, basis: Basis = Basis.HOST_CODE
) -> Callable[[RuleFunction], RuleFunction]:
    """Register the decorated function for ATen ops or packets, e.g. `@rule("aten.addmm", …)`.

    `source` names the file in PyTorch (and the release read) or the data the rule comes from.
    Raises ValueError when a key has a rule already.
    """

    def register(function: RuleFunction) -> RuleFunction:
        for key in keys:
            if key in _rules:
                raise ValueError(f"{key} has a rule already, in {_rules[key].origin}")
            _rules[key] = Rule(key, function, basis, source, function.__module__)
        return function

    return register


def user_rule(key: str, function: RuleFunction, origin: str = "user") -> None:
    """Register a rule of the user's own; it goes before ours. `key` may be "mylib::op"."""
    name = key.replace("::", ".")
    if name in _user_rules:
        raise KpredictError(f"Two rules were registered for {key}.", "Keep one of them.")
    _user_rules[name] = Rule(name, function, Basis.ASSUMED, "", origin)


def rule_of_user(*keys: str) -> Callable[[RuleFunction], RuleFunction]:
    """`@kpredict.rule("mylib::op")`: what an op of the user's own launches, as a function.

    It is given the Op and the Target and yields Launches, made by `kpredict.eager.launches`.
    """

    def register(function: RuleFunction) -> RuleFunction:
        for key in keys:
            user_rule(key, function, function.__module__)
        return function

    return register


@cache
def rules() -> Mapping[str, Rule]:
    """All of our rules, by key, after importing every module under `rules/`."""
    package = importlib.import_module("kpredict.eager.rules")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return MappingProxyType(_rules)


@cache
def _find(name: str) -> Rule | None:
    table = rules()
    packet, _, overload = name.rpartition(".")
    namespace, _, base = packet.rpartition(".")
    candidates = [name, packet]
    if base.endswith("_") and not base.endswith("__"):  # add_ → add
        functional = f"{namespace}.{base[:-1]}"
        candidates += [f"{functional}.{overload}", functional]
    if overload == "out" or overload.endswith("_out"):
        short = overload.removesuffix("_out").removesuffix("out") or "default"
        candidates += [f"{packet}.{short}"]
    return next((table[key] for key in candidates if key in table), None)


def find(op: Op) -> Rule | None:
    """The rule that decides for `op`, or None when only its tags (or nothing) can tell. The rules
    for an op with sparse operands have "sparse." before their keys."""
    if _user_rules:
        for key in (op.name, op.packet):
            if key in _user_rules:
                return _user_rules[key]
    return _find(f"sparse.{op.name}" if is_sparse(op) else op.name)


def own_rule(op: Op) -> Rule | None:
    """Our rule for `op`, whatever the user's own rules say."""
    return _find(f"sparse.{op.name}" if is_sparse(op) else op.name)


def is_sparse(op: Op) -> bool:
    """Does it take or give a sparse tensor?"""
    return any(t.parts for t in (*op.inputs, *tensors_in(op.outputs)))
