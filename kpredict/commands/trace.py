"""`kpredict trace FILE`: what a recorded profile says. Does not import torch."""

from __future__ import annotations

import dataclasses
import json

import click

from kpredict.commands._options import emit

_SHOWN = 10


@click.command()
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("-f", "--format", "form", type=click.Choice(["text", "json"]), help="Default text.")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False), metavar="FILE",
    help="Write the result to FILE; the ending .json picks JSON unless -f does.",
)  # fmt: skip
@click.option("-v", "--verbose", is_flag=True, help="Show every row of every table.")
def command(file: str, form: str | None, output: str | None, verbose: bool) -> None:
    """Count the kernels in a PyTorch profiler trace, FILE.json or FILE.json.gz.

    Per op: kernels, copies, waits, device time; then gaps, how much of the time the GPU waited
    for the host, and the chains of elementwise kernels that fusion would remove.
    """
    from kpredict import __version__
    from kpredict.findings.in_traces import find_in_trace
    from kpredict.verify.overview import overview
    from kpredict.verify.render_trace import document, text
    from kpredict.verify.trace import read_trace

    seen = overview(read_trace(file))
    found = find_in_trace(seen, file)
    if (form or ("json" if (output or "").endswith(".json") else "text")) == "json":
        whole = document(seen, file, __version__)
        whole["findings"] = [dataclasses.asdict(f) for f in found]
        emit(json.dumps(whole, indent=2), output)
        return
    lines = [str(f) for f in found[: None if verbose else _SHOWN]]
    rest = len(found) - len(lines)
    more = [f"… {rest} more (-v shows all)"] if rest else []
    report = text(seen, file, rows=None if verbose else 12)
    emit("\n".join([report, *lines, *more]) if found else report, output)
