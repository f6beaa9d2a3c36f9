"""What `--version` prints: everything a bug report needs."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

from kpredict import __version__
from kpredict.targets import DEFAULT


def version_line() -> str:
    """kpredict, torch and CUDA versions and the default target, without importing torch."""
    torch, cuda = installed_torch()
    parts = [f"kpredict {__version__}", f"torch {torch or 'not installed'}"]
    if torch:
        parts.append(f"CUDA {cuda or 'none (CPU build)'}")
    return ", ".join([*parts, f"default target {DEFAULT}"])


def installed_torch() -> tuple[str | None, str | None]:
    """(version, CUDA version) of the torch this interpreter would import, read from its files."""
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        return None, None
    try:
        text = (Path(spec.origin).parent / "version.py").read_text()
    except OSError:
        return "unknown", None
    version = re.search(r"^__version__\s*=\s*'([^']*)'", text, re.MULTILINE)
    cuda = re.search(r"^cuda[^=]*=\s*'([^']*)'", text, re.MULTILINE)
    return version[1] if version else "unknown", cuda[1] if cuda else None
