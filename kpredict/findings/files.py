"""Which files a check reads, and their text: Python files, notebooks, standard input."""

from __future__ import annotations

import fnmatch
import io
import json
import os
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kpredict.findings.check import HUGE, Checked, check_text, in_cell
from kpredict.findings.finding import Finding
from kpredict.findings.options import Options
from kpredict.model import KpredictError

SKIPPED = frozenset(
    ".git .hg .svn .tox .nox .venv venv node_modules __pycache__ .mypy_cache .ruff_cache "
    ".pytest_cache .kpredict_cache build dist .eggs site-packages".split()
)
STDIN = "-"


def files_of(paths: Sequence[str], exclude: Sequence[str] = ()) -> list[str]:
    """Files in a stable order. A folder is searched; what is named itself is taken as it is, unless
    excluded by a pattern. Raises KpredictError for a path that is not there."""
    found: dict[str, None] = {}
    for path in paths:
        if path == STDIN:
            found[STDIN] = None
        elif os.path.isdir(path):
            for file in _walk(path):
                if not _excluded(file, exclude):
                    found[file] = None
        elif os.path.exists(path):
            if not _excluded(path, exclude):
                found[path] = None
        else:
            raise KpredictError(f"There is no file {path}.")
    return list(found)


def _walk(folder: str) -> Iterator[str]:
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(d for d in folders if d not in SKIPPED and not d.startswith("."))
        for name in sorted(names):
            if name.endswith((".py", ".ipynb")):
                yield os.path.normpath(os.path.join(where, name))


def _excluded(path: str, patterns: Sequence[str]) -> bool:
    plain = path.removeprefix("./")
    return any(fnmatch.fnmatch(plain, p) or fnmatch.fnmatch(plain, p.rstrip("/") + "/*")
               or fnmatch.fnmatch(os.path.basename(plain), p) for p in patterns)  # fmt: skip


def check_bytes(data: bytes, path: str, options: Options) -> Checked:
    """Check a file's bytes: a notebook by its ending, else Python in the encoding it declares."""
    if len(data) > 4 * HUGE:
        return Checked(path, error="larger than 16 MB: taken for generated data, not read")
    if path.endswith(".ipynb"):
        return check_notebook(data, path, options)
    try:
        text = decode(data)
    except (UnicodeDecodeError, SyntaxError, LookupError) as error:
        return Checked(path, error=f"its encoding cannot be read: {error}")
    return check_text(text, path, options)


def decode(data: bytes) -> str:
    """Text by byte order mark or coding comment, else UTF-8; newlines as \\n."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = data.decode("utf-16")
    else:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding)
    return text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")


@dataclass(frozen=True, slots=True)
class Cell:
    number: int
    text: str


def cells_of(data: bytes) -> list[Cell]:
    """The code cells of a notebook, magics blanked out. Raises ValueError for other JSON."""
    book = json.loads(data.decode("utf-8-sig"))
    cells = book.get("cells") if isinstance(book, dict) else None
    if not isinstance(cells, list):
        raise ValueError("no cells")
    out: list[Cell] = []
    for i, cell in enumerate(cells, 1):
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        source = cell.get("source", "")
        text = "".join(map(str, source)) if isinstance(source, list) else str(source)
        out.append(Cell(i, "\n".join(map(_without_magic, text.split("\n")))))
    return out


def _without_magic(line: str) -> str:
    stripped = line.lstrip()
    return line[: len(line) - len(stripped)] + "pass" if stripped[:1] in ("%", "!", "?") else line


def check_notebook(data: bytes, path: str, options: Options) -> Checked:
    """All cells as one program, so that names carry over; lines are mapped back to their cell."""
    try:
        cells = cells_of(data)
    except (ValueError, UnicodeDecodeError, RecursionError):
        return Checked(path, error="not a notebook")
    whole = check_text("\n".join(c.text for c in cells), path, options)
    starts: list[tuple[int, int]] = []  # (last line before the cell, its number)
    line = 0
    for c in cells:
        starts.append((line, c.number))
        line += c.text.count("\n") + 1
    findings: list[Finding] = []
    for f in whole.findings:
        offset, number = max(s for s in starts if s[0] < f.line)
        findings += in_cell(Checked(path, (f,)), number, offset).findings
    return Checked(path, tuple(findings), whole.error, whole.line, whole.suppressed, whole.faults,
                   whole.rests_on)  # fmt: skip


def read_bytes(path: str, stdin: bytes | None = None) -> bytes:
    return stdin if path == STDIN and stdin is not None else Path(path).read_bytes()
