"""Functions that PyTorch has as one operation, written out: Changes that put the operation there.

The patterns are matched on what is computed and not on names, strictly: whatever differs in more
than rounding (an unbiased variance, an epsilon at another place) is no match.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kpredict.changes import activations, attention, losses, norms, softmaxes
from kpredict.changes.change import Alternatives, Change, Edit, Kind
from kpredict.changes.facts import launches_on
from kpredict.changes.names import FUNCTIONAL
from kpredict.changes.reading import Reading, Site
from kpredict.changes.rewrites import Rewrite
from kpredict.changes.writing import rewrite
from kpredict.model import Entry

_TITLE = 72  # characters


def find(reading: Reading, entries: Sequence[Entry] = ()) -> Iterator[Alternatives]:
    """The patterns of one function, outermost first; ways to say overlapping ones together. What
    holds for some shapes only is offered where the entries' plans show those."""
    found: list[tuple[int, int, Change]] = []
    for site in reading.sites:
        for match in _matches(site):
            made = rewrite(site, match.say)
            if made is not None:
                change = _change(site, match, *made)
                if not _fits(match, change, entries):
                    continue
                found.append((match.rank, -sum(e.end - e.start for e in change.edits), change))
    groups: list[list[Change]] = []
    for _, _, change in sorted(found, key=lambda f: f[:2]):
        group = next((g for g in groups if any(change.conflicts(c) for c in g)), None)
        if group is None:
            groups.append([change])
        else:
            group.append(change)
    yield from (tuple(g) for g in groups)


def _matches(site: Site) -> Iterator[Rewrite]:
    term = site.term
    for family in (softmaxes, norms, activations, losses):
        yield from family.find(term)
    yield from attention.find(term, site)


def _fits(match: Rewrite, change: Change, entries: Sequence[Entry]) -> bool:
    """Whether the plans show the shapes and dtypes for which the rewrite holds."""
    launches = launches_on(entries, change.first, change.last)
    if match.even and any(
        "aten.mul.Tensor" in x.ops and len({a.tensor.dtype for a in x.reads}) > 1 for x in launches
    ):
        return False
    ranks = {x.reads[0].tensor.ndim for x in launches if match.matrix in x.ops and x.reads}
    return not match.matrix or ranks == {2}


def _change(site: Site, match: Rewrite, edits: tuple[Edit, ...], text: str) -> Change:
    r = site.reading
    lines = [r.text.count("\n", 0, e.start) + 1 for e in edits]
    last = max([site.node.end_lineno or site.node.lineno, *lines])
    spelled = r.names.spell(FUNCTIONAL)
    text = text if spelled is None else text.replace(f"{spelled}.", "F.")
    shown = text if len(text) <= _TITLE else f"{text[: _TITLE - 1]}…"
    return Change(
        Kind.BY_HAND, f"{match.what} by hand → {shown}", min(lines), last, edits, match.note, r.name
    )
