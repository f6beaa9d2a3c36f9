"""The same files on several releases of torch: counts side by side, and what a release lacks.

    python benchmarks/releases.py [FILE_OR_FOLDER...] [--at 2.11.0=/path/to/python ...]
                                  [--create FOLDER] [--every N] [--write README.md]

Each release runs kpredict from this checkout in an environment of its own: `--at` names one that
is there, `--create` makes those that are missing (`pip install torch==...`: some gigabytes each).
Files are the repository's fixtures unless others are given, such as a folder of programs (every
N-th). Prints a line for each entry and phase whose counts differ between releases, every failure
(a private name of torch that a release lacks is named in it), and a table of totals.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tables import put

ROOT = Path(__file__).resolve().parents[1]
RELEASES = ("2.11.0", "2.12.0", "2.13.0", "2.14.1")
NEEDS = ("click", "libcst", "networkx", "numpy")
BEGIN = "<!-- releases -->"
Key = tuple[str, str, str, str]
"""File, entry, mode and phase."""


def pythons(at: Sequence[str], folder: Path | None) -> Mapping[str, Path]:
    """An interpreter for each release: those given, then those in `folder`, made if need be."""
    found = {name: Path(path) for name, _, path in (text.partition("=") for text in at)}
    for release in RELEASES if folder is not None else ():
        if release not in found and folder is not None:
            python = folder / release / "bin" / "python"
            if not python.exists():
                subprocess.run([sys.executable, "-m", "venv", folder / release], check=True)
                wanted = [f"torch=={release}", *NEEDS]
                subprocess.run([python, "-m", "pip", "install", "-q", *wanted], check=True)
            found[release] = python
    return found


def ask(python: Path, file: Path) -> dict[str, Any]:
    """The report on one file, as JSON."""
    ran = subprocess.run(
        [python, "-m", "kpredict", file, "-f", "json", "--dim", "b=8,n=128"],
        capture_output=True, text=True, timeout=600, cwd=ROOT, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    try:
        report: dict[str, Any] = json.loads(ran.stdout)
    except ValueError:
        return {"entries": [], "errors": [{"name": "", "message": ran.stderr[-300:]}]}
    return report


def counts(file: Path, report: Mapping[str, Any]) -> Iterator[tuple[Key, str]]:
    """Kernels of each plan: an interval, and how many launches of which kind make it."""
    for entry in report["entries"]:
        for mode, phases in entry["plans"].items():
            for phase, plan in phases.items():
                lo, hi = plan["kernels"]["lo"], plan["kernels"]["hi"]
                kernels = str(lo) if lo == hi else f"{lo}..{hi}"
                yield (file.name, entry["name"], mode, phase), kernels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="*", type=Path, default=[ROOT / "fixtures"])
    parser.add_argument("--at", action="append", default=[], metavar="RELEASE=PYTHON")
    parser.add_argument("--create", type=Path, metavar="FOLDER")
    parser.add_argument("--every", type=int, default=1, help="every N-th file")
    parser.add_argument("--write", type=Path, help="put the table into this file")
    asked = parser.parse_args()
    files = [f for p in asked.files for f in (sorted(p.glob("*.py")) if p.is_dir() else [p])]
    found: dict[str, dict[Key, str]] = {}
    table = [
        "| torch | plans, eager | plans, compiled | failures | seconds |",
        "|---|---|---|---|---|",
    ]
    for release, python in pythons(asked.at, asked.create).items():
        start, failures = time.perf_counter(), 0
        seen = found.setdefault(release, {})
        for file in files[:: asked.every]:
            report = ask(python, file)
            seen.update(counts(file, report))
            for error in report["errors"]:
                failures += 1
                print(f"{release}  {file.name} {error['name']}: {error['message']}", flush=True)
        modes = [mode for _, _, mode, _ in seen]
        plans = f"{modes.count('eager')} | {modes.count('compiled')}"
        seconds = time.perf_counter() - start
        table.append(f"| {release} | {plans} | {failures} | {seconds:.0f} |")
    for key in dict.fromkeys(key for seen in found.values() for key in seen):
        told = {release: seen.get(key, "-") for release, seen in found.items()}
        if len(set(told.values())) > 1:
            print(" ".join(key), " ".join(f"{r}: {n}" for r, n in told.items()), sep="  ")
    print("\n".join(table))
    if asked.write:
        put(asked.write, BEGIN, table)


if __name__ == "__main__":
    main()
