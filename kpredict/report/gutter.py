"""The annotated source: each line with its launches, bytes, compiled kernels and marks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kpredict.model import ZERO, Entry, Phase
from kpredict.report.additions import additions
from kpredict.report.lines import NOWHERE, Row, elsewhere, fused_mode, rows, shown_lines
from kpredict.report.quantities import ranges, size
from kpredict.report.style import CYAN, DIM, TITLES, Style, aligned

_ELSEWHERE_LIMIT = 16


def annotated(entry: Entry, style: Style) -> Iterator[str]:
    found = rows(entry)
    for addition in additions(entry):
        found[addition.line].more += addition.added
    lines = shown_lines(entry, found, whole=style.verbose > 0)
    source = entry.source.splitlines()
    fused = fused_mode(entry)
    cells = {n: _cells(found.get(n, Row()), entry.calls.get(n, 1), style) for n in lines}
    if NOWHERE in found:
        cells[NOWHERE] = _cells(found[NOWHERE], 1, style)
    columns = ["calls", "eager", "backward", "copies", "moved", "compiled", "marks"]
    optional = {"calls", "backward", "copies", "marks"} | ({"compiled"} if fused is None else set())
    columns = [c for c in columns if c not in optional or any(x[c] for x in cells.values())]
    titles = {"marks": "", "compiled": TITLES[fused] if fused is not None else ""}
    widths = {
        c: max(len(titles.get(c, c)), *(len(x[c]) for x in cells.values()), 0) if cells else 0
        for c in columns
    }
    bar = style.sign("bar")

    def gutter(number: str, row: Mapping[str, str]) -> str:
        parts = [f"{number:>5}"]
        for c in columns:
            left = c in ("compiled", "marks")
            parts.append(f"{row[c]:{'<' if left else '>'}{widths[c]}}")
        return "  ".join(parts)

    yield style.paint(gutter("line", {c: titles.get(c, c) for c in columns}) + f" {bar}", DIM)
    before = None
    for n in lines:
        if before is not None and n > before + 1:
            yield style.paint(f"{style.sign('gap'):>5}", DIM)
        before = n
        head = gutter(str(n), cells[n])
        busy = any(cells[n][c] for c in columns)
        text = source[n - 1] if n <= len(source) else ""
        room = None if style.width is None else style.width - len(head) - 3
        yield (
            style.paint(head, CYAN if busy else DIM) + f" {bar} " + style.cut(text, room)
        ).rstrip()
    if NOWHERE in found:
        yield style.paint(gutter("", cells[NOWHERE]) + f" {bar} ", CYAN) + "(not from a line here)"
    yield from _key(found, style)
    if NOWHERE in found:
        yield from _elsewhere(entry, style)


def _elsewhere(entry: Entry, style: Style) -> Iterator[str]:
    """What came from no line of the file, by module or by the place in other files."""
    groups = elsewhere(entry)
    if len(groups) < 2:
        return
    yield ""
    shown = groups if style.verbose else groups[:_ELSEWHERE_LIMIT]
    table = [["from elsewhere", "kernels", "moved"]]
    table += [[g.where, str(g.kernels), size(g.bytes)] for g in shown]
    yield from aligned(table, style)
    if len(shown) < len(groups):
        more = f"{style.sign('more')} {len(groups) - len(shown)} more; -v shows all"
        yield style.paint(f"  {more}", DIM)


def _cells(row: Row, calls: int, style: Style) -> dict[str, str]:
    forward = sum((c for p, c in row.eager.items() if p is not Phase.BACKWARD), ZERO)
    backward = row.eager.get(Phase.BACKWARD, ZERO)
    marks = [
        style.sign(name)
        for name, on in (
            ("trip", row.round_trip), ("sync", row.sync), ("break", row.graph_break),
            ("unknown", row.unknown), ("added", row.more > 0),
        )
        if on
    ]  # fmt: skip
    return {
        "calls": f"{calls}x" if calls > 1 and (row.eager or row.bytes) else "",
        "eager": "" if forward == ZERO else str(forward),
        "backward": "" if backward == ZERO else str(backward),
        "copies": str(row.copies or ""),
        "moved": size(row.bytes) if row.bytes else "",
        "compiled": ranges(row.compiled, "#"),
        "marks": "".join(marks),
    }  # fmt: skip


def _key(found: Mapping[int, Row], style: Style) -> Iterator[str]:
    """What the marks mean, those that appear."""
    values = found.values()
    meanings = {
        style.sign("trip"): (any(r.round_trip for r in values), "writes an array read back later"),
        style.sign("sync"): (any(r.sync for r in values), "the host waits for the GPU"),
        style.sign("break"): (any(r.graph_break for r in values), "torch.compile breaks the graph"),
        style.sign("unknown"): (any(r.unknown for r in values), "an op whose launches are unknown"),
        style.sign("added"): (any(r.more for r in values), "compiling launches more here"),
        "copies:": (any(r.copies for r in values), "memcpy and memset"),
    }
    said = [f"{sign} {meaning}" for sign, (on, meaning) in meanings.items() if on]
    if said and (style.width is None or len("   ".join(said)) + 7 <= style.width):
        said = ["   ".join(said)]
    yield from (style.paint(f"{'':5}  {line}", DIM) for line in said)
