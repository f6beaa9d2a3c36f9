"""`kpredict trace FILE`: what a recorded profile says. Does not import torch."""

from __future__ import annotations

import dataclasses
import json
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kpredict import __version__
from kpredict.commands._options import emit
from kpredict.model import KpredictError, Target

if TYPE_CHECKING:
    from kpredict.findings.finding import Finding
    from kpredict.verify.overview import Overview

FORMATS = ("text", "json", "github", "sarif", "markdown", "junit")
ENDINGS = {".json": "json", ".sarif": "sarif", ".md": "markdown", ".xml": "junit"}
_ROWS = 12


@click.command()
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("-f", "--format", "form", type=click.Choice(FORMATS), help="Default text.")
@click.option("--select", multiple=True, metavar="CODES", help="Codes to report, with exit code 1.")
@click.option("--ignore", multiple=True, metavar="CODES", help="Codes to leave out.")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False), metavar="FILE",
    help="Write the result to FILE; its ending picks the format unless -f does.",
)  # fmt: skip
@click.option("-v", "--verbose", is_flag=True, help="Show every row of every table.")
def command(
    file: str, form: str | None, select: tuple[str, ...], ignore: tuple[str, ...],
    output: str | None, verbose: bool,
) -> int:  # fmt: skip
    """Count the kernels in a PyTorch profiler trace, FILE.json or FILE.json.gz.

    Per op: kernels, copies, waits, device time; then gaps, how much of the time the GPU waited
    for the host, and the chains of elementwise kernels that fusion would remove, as findings too.
    """
    from kpredict.config import split_codes
    from kpredict.findings.in_traces import find_in_trace
    from kpredict.findings.registry import rules, selected
    from kpredict.verify.overview import overview
    from kpredict.verify.trace import read_trace

    wanted, unwanted = (split_codes(texts, rules()) for texts in (select, ignore))
    codes = {rule.code for rule in selected(wanted, unwanted)}
    seen = overview(read_trace(file))
    found = [f for f in find_in_trace(seen, file) if f.code in codes]
    chosen = form or ENDINGS.get(Path(output or "").suffix, "text")
    emit(_render(chosen, seen, found, file, None if verbose else _ROWS), output)
    return 1 if select and found else 0


def _render(form: str, seen: Overview, found: list[Finding], file: str, rows: int | None) -> str:
    from kpredict.findings.results import Results
    from kpredict.verify.render_trace import document, text

    if form == "json":
        whole = document(seen, file, __version__)
        whole["findings"] = [dataclasses.asdict(f) for f in found]
        return json.dumps(whole, indent=2)
    if form == "text":
        shown = [str(f) for f in found[:rows]]
        rest = len(found) - len(shown)
        more = [f"… {rest} more (-v shows all)"] if rest else []
        return "\n".join([text(seen, file, rows=rows), *shown, *more])
    results = Results(_target(seen), tuple(found), files=1)
    renderer = import_module(f"kpredict.report.findings_{form}")
    versioned = (__version__,) if form == "sarif" else ()
    return str(renderer.render(results, *versioned))


def _target(seen: Overview) -> Target:
    """The profile of the GPU in the trace; the default where there is none."""
    from kpredict.targets import target
    from kpredict.verify.bundle import Machine
    from kpredict.verify.machines import target_of

    try:
        device = seen.device
        return target(target_of(Machine(device.name, device.capability, device.sms))[0])
    except KpredictError:
        return target()
