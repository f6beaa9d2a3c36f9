"""Where a benchmark puts its table: between two marks in a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

END = "<!-- end -->"


def put(page: Path, begin: str, table: Sequence[str]) -> None:
    """Replace what stands between the line `begin` and the next `END`."""
    head, _, rest = page.read_text().partition(begin)
    _, _, tail = rest.partition(END)
    page.write_text(f"{head}{begin}\n" + "\n".join(table) + f"\n{END}{tail}")
