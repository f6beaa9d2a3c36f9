"""`kpredict verify PATH`: hold the prediction against a real GPU, or against a recording of one."""

from __future__ import annotations

import sys
from typing import Any

import click

from kpredict.commands._options import (
    SWEEP,
    analysis_options,
    emit,
    paths_argument,
    requests,
    target_options,
)  # fmt: skip


@click.command()
@paths_argument
@analysis_options
@target_options
@click.option("--if-cuda", is_flag=True, help="Without a GPU say so and exit 0, not 2.")
@click.option("--save", metavar="FILE", help="Keep the measurement as a bundle.")
@click.option(
    "--from", "source", metavar="FILE",
    help="Compare with a bundle or a profiler trace (.json, .json.gz) instead of measuring.",
)  # fmt: skip
@click.option(
    "--sweep", metavar=SWEEP,
    help="Repeat with an input or dimension of so many elements: a=1e2,1e4 or a=1e2..1e8.",
)  # fmt: skip
@click.option(
    "--seconds", type=click.FloatRange(min=0), default=1.0, show_default=True,
    help="How long to time each mode; 0 only counts.",
)  # fmt: skip
@click.option(
    "--jobs", type=click.IntRange(min=1), default=1, show_default=True,
    help="Files to work on at a time; counts stay right, times get worse.",
)  # fmt: skip
@click.option(
    "-f", "--format", "form", type=click.Choice(["text", "json", "junit", "chrome"]),
    help="Default text; chrome is a trace with the predicted lane beside the measured one.",
)  # fmt: skip
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False), metavar="FILE",
    help="Write the result to FILE; .json or .xml picks the format unless -f does.",
)  # fmt: skip
@click.option("-v", "--verbose", count=True, help="Every launch, and the file's own output.")
def command(
    paths: tuple[str, ...], if_cuda: bool, save: str | None, source: str | None,
    sweep: str | None, seconds: float, jobs: int, form: str | None, output: str | None,
    verbose: int, **flags: Any,
) -> int:  # fmt: skip
    """Run the entry points on this machine's GPU and say for each launch if it was predicted.

    Exit code 1 when a measured count is outside its predicted interval.
    """
    from kpredict.session.messages import Answer
    from kpredict.verify.answer import Choice, answer

    def heard(child: Answer) -> None:
        if verbose and child.output:
            sys.stderr.write(child.output)

    choice = Choice(form, output, bool(verbose), if_cuda, save, source, sweep, seconds, jobs)
    text, code = answer(requests(paths, **flags), choice, heard)
    emit(text, output)
    return code
