"""What `kpredict verify` prints and returns, for either command line: click's and argparse's.

In: Requests and a Choice. Out: text and an exit code. No torch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kpredict import __version__
from kpredict.model import KpredictError, Mode
from kpredict.request import Request
from kpredict.session.ask import analyse
from kpredict.session.messages import Answer
from kpredict.sweep import parse_sweep
from kpredict.verify import render_data, render_text, sweep
from kpredict.verify.check import Verification
from kpredict.verify.run import CudaMissing, check_bundle, load_measurement, verify

FORMATS: Mapping[str, Callable[[Verification], str]] = {
    "json": lambda found: json.dumps(render_data.document(found, __version__), indent=2),
    "junit": render_data.junit,
    "chrome": render_data.chrome,
}
ENDINGS = {".json": "json", ".xml": "junit"}


@dataclass(frozen=True, slots=True)
class Choice:
    """What is asked besides the requests. `source` is a bundle or trace to compare with."""

    form: str | None = None
    output: str | None = None
    verbose: bool = False
    if_cuda: bool = False
    save: str | None = None
    source: str | None = None
    sweep: str | None = None
    seconds: float = 1.0
    jobs: int = 1


def answer(
    requests: Sequence[Request], choice: Choice, heard: Callable[[Answer], None] | None = None
) -> tuple[str, int]:
    """The text of the result and the exit code: 0 all agree, 1 not, 2 something failed."""
    if choice.source is not None:
        bundle = load_measurement(choice.source, requests)
        found = check_bundle(requests, bundle, heard=heard)
        return render(found, choice), found.exit_code
    try:
        if choice.sweep is not None:
            return _sweep(requests, choice, heard)
        found, bundle = verify(requests, seconds=choice.seconds, jobs=choice.jobs, heard=heard)
    except CudaMissing:
        if choice.if_cuda:
            return "skipped: no CUDA\n", 0
        raise
    if choice.save is not None:
        save(bundle.to_json(), choice.save)
    return render(found, choice), found.exit_code


def render(found: Verification, choice: Choice) -> str:
    form = choice.form or ENDINGS.get(Path(choice.output or "").suffix, "text")
    if form in FORMATS:
        return FORMATS[form](found)
    return render_text.text(found, verbose=choice.verbose)


def _sweep(
    requests: Sequence[Request], choice: Choice, heard: Callable[[Answer], None] | None
) -> tuple[str, int]:
    """Every size is a verification of its own; the worst of their exit codes counts."""
    name, sizes = parse_sweep(choice.sweep or "")
    lines: list[str] = []
    code = 0
    for request in requests:
        entries = analyse([request], heard).entries
        if not entries:
            raise KpredictError(f"{request.file} has no entry point whose inputs are known.")
        for entry in entries:
            rows = []
            for n in sizes:
                one = sweep.sized(request, entry.name, entry.inputs, name, n)
                found, _ = verify([_two_modes(one)], seconds=choice.seconds, heard=heard)
                rows.append((n, found))
                code = max(code, found.exit_code)
            lines.append(f"{entry.name}\n{sweep.table(name, rows)}")
    return "\n".join(lines), code


def _two_modes(request: Request) -> Request:
    return replace(request, modes=(Mode.EAGER, Mode.COMPILED))


def save(text: str, path: str) -> None:
    """Write a file whole. Raises KpredictError where that cannot be done."""
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise KpredictError(f"{path} cannot be written: {error.strerror}.") from None
