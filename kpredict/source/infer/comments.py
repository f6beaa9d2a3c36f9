"""What comments say: input directives and suppressions. Read only in files that have any."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from kpredict.model import KpredictError
from kpredict.source.infer.shapes.pointwise import channels_last
from kpredict.source.infer.shapes.registry import fresh
from kpredict.source.infer.values import UNKNOWN, Value
from kpredict.source.inputs import (
    DictSpec,
    InputSpec,
    ListSpec,
    TensorSpec,
    ValueSpec,
    resolve,
)  # fmt: skip

_IGNORE = re.compile(r"#\s*kpredict:\s*ignore(?:\[([^\]]*)\])?\s*(.*)", re.I)
_NOQA = re.compile(r"#\s*noqa:\s*([A-Z]+[0-9]+(?:[,\s]+[A-Z]+[0-9]+)*)", re.I)


@dataclass(frozen=True, slots=True)
class Suppression:
    """A comment that hides findings on `line`. `codes` empty: all of ours. `at` is where it is."""

    line: int
    codes: tuple[str, ...]
    reason: str
    at: int
    column: int


def suppressions(text: str, families: Collection[str] = ("KP",)) -> list[Suppression]:
    """All suppressions of a file; a comment of its own line is for the next line of code. Of
    `# noqa` only the codes that begin with one of `families` are ours."""
    letters = "|".join(families)
    if not re.search(rf"kpredict:\s*ignore|noqa:\s*[^\n]*(?:{letters})\d", text, re.I):
        return []
    found: list[Suppression] = []
    waiting: list[Suppression] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                made = _suppression(token, tuple(families))
                if made is None:
                    continue
                if token.line[: token.start[1]].strip():
                    found.append(made)
                else:
                    waiting.append(made)
            elif waiting and token.type not in (
                tokenize.NL,
                tokenize.NEWLINE,
                tokenize.INDENT,
                tokenize.DEDENT,
            ):
                found += [
                    Suppression(token.start[0], w.codes, w.reason, w.at, w.column) for w in waiting
                ]
                waiting = []
    except (tokenize.TokenError, IndentationError, SyntaxError):
        pass
    return found


def _suppression(token: tokenize.TokenInfo, families: tuple[str, ...]) -> Suppression | None:
    line, column = token.start[0], token.start[1] + 1
    ours = _IGNORE.search(token.string)
    if ours:
        codes = tuple(c.strip().upper() for c in (ours[1] or "").split(",") if c.strip())
        return Suppression(line, codes, ours[2].strip(), line, column)
    noqa = _NOQA.search(token.string)
    if noqa:
        codes = tuple(
            c for c in re.split(r"[,\s]+", noqa[1].upper()) if c.rstrip("0123456789") in families
        )
        return Suppression(line, codes, "", line, column) if codes else None
    return None


def directives(text: str, file: str, dims: Mapping[str, int]) -> dict[str, dict[str, Value]]:
    """Inputs by qualified function name, where directives state them. A directive that cannot be
    read is left to the main job to complain about."""
    if not re.search(r"#\s*kpredict:(?!\s*ignore)", text):
        return {}
    from kpredict.source.entries import read_source

    try:
        source = read_source(file, text)
    except (KpredictError, RecursionError):
        return {}
    out: dict[str, dict[str, Value]] = {}
    for entry in source.entries:
        if entry.directive:
            values = {name: value_of(spec, dims) for name, spec in entry.directive.items()}
            out[entry.name] = values
            out[f"{entry.name}.forward"] = values
    return out


def value_of(spec: InputSpec, dims: Mapping[str, int]) -> Value:
    """The value that a spec describes."""
    match spec:
        case TensorSpec():
            try:
                known = resolve(spec, dims)
            except KpredictError:  # some size has a name that nothing tells
                known = spec
            assert isinstance(known, TensorSpec)
            sizes = [s if isinstance(s, int) else dims.get(s) for s in known.shape]
            stride = spec.stride
            if spec.channels_last and None not in sizes and len(sizes) == 4:
                stride = channels_last(tuple(s or 0 for s in sizes))
            made = fresh(sizes, spec.dtype, spec.device, stride)
            return replace(made, requires_grad=True) if spec.grad else made
        case ListSpec():
            items = [value_of(s, dims) for s in spec.items]
            return tuple(items) if spec.is_tuple else items
        case DictSpec():
            return {k: value_of(s, dims) for k, s in spec.items}
        case ValueSpec():
            return spec.value
    return UNKNOWN
