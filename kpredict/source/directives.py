"""Comments and conventions → a Source, whichever reader found the definitions. No libcst.

In: entries with the lines they span, comments by line, top-level names and constants.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kpredict.source.inputs import InputSpec, parse_directive
from kpredict.source.nouns import EntryKind, EntryPoint, Source, Suppression

_DIRECTIVE = re.compile(r"#\s*kpredict:\s*(.*)")
_IGNORE = re.compile(r"ignore(?:\[([^\]]*)\])?\s*(.*)")
_NOQA = re.compile(r"#\s*noqa:\s*((?:[A-Z]+\d+[\s,]*)+)(.*)")


def assemble(
    path: str, text: str, found: Sequence[tuple[EntryPoint, tuple[int, int]]],
    comments: Mapping[int, str], constants: Mapping[str, object], defines: Iterable[str],
    has_main_block: bool,
) -> Source:  # fmt: skip
    """`found` pairs an entry with its first line and that of its body's first statement."""
    directives = {
        line: match[1].strip()
        for line, comment in comments.items()
        if (match := _DIRECTIVE.match(comment))
    }
    entries = [_with_directive(e, span, directives, comments) for e, span in found]
    by_name = {e.name: e for e in entries}
    entries = [_with_forward(e, by_name) for e in entries]
    entry, stated = constants.get("ENTRY"), constants.get("D2H_VALUE")
    return Source(
        path, text, tuple(sorted(entries, key=lambda e: e.line)), frozenset(defines),
        entry if isinstance(entry, str) else "", constants.get("MODE") == "training",
        float(stated) if isinstance(stated, (int, float)) else None, has_main_block,
        tuple(_suppressions(comments)),
    )  # fmt: skip


def _with_directive(
    entry: EntryPoint, span: tuple[int, int], directives: Mapping[int, str],
    comments: Mapping[int, str],
) -> EntryPoint:  # fmt: skip
    """Comments right above the def, beside it, and before the body's first statement."""
    first, body = span
    while first - 1 in comments:
        first -= 1
    last = max(body - 1, entry.line)
    texts = [
        text for line, text in sorted(directives.items())
        if first <= line <= last and not _IGNORE.fullmatch(text)
    ]  # fmt: skip
    if not texts:
        return entry
    return replace(entry, directive=parse_directive(", ".join(texts)), has_directive=True)


def _with_forward(entry: EntryPoint, all_entries: Mapping[str, EntryPoint]) -> EntryPoint:
    """A module's inputs may be told on `forward`, its own arguments on `__init__`."""
    if entry.kind is not EntryKind.MODULE:
        return entry
    told: dict[str, InputSpec] = {}
    has = entry.has_directive
    for method in ("__init__", "forward"):
        found = all_entries.get(f"{entry.name}.{method}")
        if found is not None:
            told |= found.directive
            has |= found.has_directive
    return replace(entry, directive=told | dict(entry.directive), has_directive=has)


def _suppressions(comments: Mapping[int, str]) -> Sequence[Suppression]:
    found: list[Suppression] = []
    for line, comment in sorted(comments.items()):
        directive = _DIRECTIVE.match(comment)
        ignore = _IGNORE.fullmatch(directive[1].strip()) if directive else None
        noqa = _NOQA.search(comment)
        match = ignore or noqa
        if match is not None:
            codes = tuple(c for c in re.split(r"[\s,]+", match[1] or "") if c)
            found.append(Suppression(line, codes, match[2].strip()))
    return found
