"""Hold the predictions against this machine's GPU: the article, the fixtures, 30 programs.

    python tests/gpu/check.py [--jobs 4] [--bundle gpu-bundle.json] [--report gpu-report.txt]

Needs torch and nothing else. Writes the measurement as a bundle and the comparison as text; prints
the table of agreement. Exit code 0 when every plan agrees, 1 when one does not, 2 without a GPU.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

from kpredict.model import KpredictError, Mode
from kpredict.request import Request
from kpredict.verify import render_text
from kpredict.verify.check import Verification
from kpredict.verify.run import verify

ROOT = Path(__file__).resolve().parents[2]


def files() -> list[str]:
    """Every fixture that makes a GPU work; paths as from the root of the repository."""
    found = [*sorted(ROOT.glob("fixtures/*.py")), *sorted(ROOT.glob("fixtures/programs/*.py"))]
    return [str(path.relative_to(ROOT)) for path in found]


def table(found: Verification) -> str:
    """Markdown: by mode, how many plans agree and how many launches are as predicted."""
    lines = [
        f"{found.machine}, triton {found.machine.triton or 'none'}, target {found.target.name}",
        "",
        "| mode | plans | agree | launches | as predicted |",
        "|---|---|---|---|---|",
    ]
    for mode in Mode:
        plans = [c for c in found.checked if c.mode is mode]
        rows = Counter(v for c in plans for r in c.comparison.rows for v in [r.verdict.value])
        right = rows["equal"] + rows["inside"]
        if plans:
            lines.append(
                f"| {mode} | {len(plans)} | {sum(c.comparison.agrees for c in plans)} "
                f"| {rows.total()} | {right} |"
            )
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=0.2, help="how long to time each mode")
    parser.add_argument("--bundle", type=Path, default=Path("gpu-bundle.json"))
    parser.add_argument("--report", type=Path, default=Path("gpu-report.txt"))
    parser.add_argument("files", nargs="*", default=files())
    options = parser.parse_args()
    start = time.perf_counter()
    try:
        found, bundle = verify(
            [Request(file, timeout=280) for file in options.files],
            seconds=options.seconds, jobs=options.jobs,
        )  # fmt: skip
    except KpredictError as error:
        print(f"gpu-check: {error}", file=sys.stderr)
        return 2
    options.bundle.write_text(bundle.to_json())
    options.report.write_text(render_text.text(found, verbose=True))
    print(render_text.text(found, paste_reports=False))
    print(table(found))
    print(f"{time.perf_counter() - start:.0f} s; {options.bundle}, {options.report} written")
    return found.exit_code


if __name__ == "__main__":
    sys.exit(main())
