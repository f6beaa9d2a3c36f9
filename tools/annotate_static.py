"""Writes into fixtures/static/*.py what each line launches, as a run on the pretended GPU counts.

    python tools/annotate_static.py [FILE …]

`# eager: N` ends a line that launches N kernels and library calls in the forward phase. Where
reading source tells less, `# read: LO..HI` is the first line of the file.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

from kpredict.model import Kind, Mode, Phase
from kpredict.request import Request
from kpredict.session.ask import analyse
from kpredict.source.infer.counting import calls, default_target
from kpredict.source.infer.entries import read_conventional
from kpredict.source.infer.trace import count

FOLDER = Path(__file__).parents[1] / "fixtures/static"
NOTE = re.compile(r"  # eager: \d+$", re.M)


def counted(paths: list[Path]) -> dict[Path, Counter[int]]:
    """Kernels and library calls by line; 0 for those that have none."""
    requests = []
    for path in paths:
        training = re.search(r'^MODE = "training"', path.read_text(), re.M)
        phases = (Phase.FORWARD, Phase.BACKWARD) if training else (Phase.FORWARD,)
        requests.append(Request(str(path), modes=(Mode.EAGER,), phases=phases))
    found: dict[Path, Counter[int]] = {}
    for entry in analyse(requests).entries:
        plan = entry.plans[Mode.EAGER].forward
        lines = found.setdefault(Path(entry.file), Counter())
        for x in plan.launches if plan else ():
            if x.kind is Kind.KERNEL:
                lines[x.lines[0].line if x.lines else 0] += x.count.lo
            elif x.kind is Kind.LIBRARY:
                lines[x.lines[0].line if x.lines else 0] += 1
    return found


def main() -> None:
    paths = [Path(a) for a in sys.argv[1:]] or sorted(FOLDER.glob("*.py"))
    for path in paths:
        text = re.sub(r"\A# read: .*\n", "", path.read_text())
        path.write_text(NOTE.sub("", text))
    for path, lines in counted(paths).items():
        text = path.read_text()
        read = read_conventional(text, str(path), default_target())
        assert read is not None
        interval = count(read.items, lambda step: calls(step, default_target()))
        noted = [
            f"{line}  # eager: {lines[i]}" if lines[i] else line
            for i, line in enumerate(text.splitlines(), 1)
        ]
        if str(interval) != str(lines.total()):
            noted.insert(0, f"# read: {interval}")
        path.write_text("\n".join(noted) + "\n")


if __name__ == "__main__":
    main()
