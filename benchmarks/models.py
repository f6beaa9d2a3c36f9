"""Real models from `transformers`, random weights: is there a report, how soon, in what memory.

    pip install transformers
    python benchmarks/models.py [NAME...] [--write README.md]

Each file in `benchmarks/models/` is an ordinary user file. Prints a table; `--write` puts it into a
file, between the lines `<!-- models -->` and `<!-- end -->`.
"""

from __future__ import annotations

import argparse
import ast
from pathlib import Path

from tables import put

from kpredict.model import Mode
from kpredict.request import Request
from kpredict.session.ask import ask
from kpredict.session.messages import Answer

FOLDER = Path(__file__).parent / "models"
BEGIN = "<!-- models -->"


def row(path: Path, answer: Answer) -> str:
    """One line of the table."""
    what = (ast.get_docstring(ast.parse(path.read_text())) or path.stem).rstrip(".")
    cost = f"{answer.seconds:.0f} s | {answer.peak_mb / 1000:.1f} GB"
    if not answer.entries:
        return f"| {what} | error: {answer.errors[0].message} | | | {cost} |"
    entry = answer.entries[0]
    counts = {mode: phases.kernels for mode, phases in entry.plans.items()}
    unknown = len({u.op for u in entry.unknowns})
    told = [str(counts.get(mode, "-")) for mode in (Mode.EAGER, Mode.COMPILED)]
    return f"| {what} | {told[0]} | {told[1]} | {unknown} | {cost} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="default all")
    parser.add_argument("--write", type=Path, help="put the table into this file")
    asked = parser.parse_args()
    paths = [p for p in sorted(FOLDER.glob("*.py")) if not asked.names or p.stem in asked.names]
    table = [
        "| model | eager kernels | compiled kernels | unknown ops | time | memory |",
        "|---|---|---|---|---|---|",
    ]
    print("\n".join(table), flush=True)
    for path in paths:
        table.append(row(path, ask(Request(str(path), timeout=600))))
        print(table[-1], flush=True)
    if asked.write:
        put(asked.write, BEGIN, table)


if __name__ == "__main__":
    main()
