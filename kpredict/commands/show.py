"""`kpredict show PATH`: the main job, source annotated with what the GPU would run."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from kpredict import __version__
from kpredict.commands._options import (
    analysis_options,
    emit,
    output_options,
    paths_argument,
    requests,
    target_options,
    use_color,
)
from kpredict.model import Entry, KpredictError, Report
from kpredict.request import Request


@click.command()
@paths_argument
@analysis_options
@target_options
@click.option("-f", "--format", "form", type=click.Choice(["text", "json"]), help="Default text.")
@output_options
def command(
    paths: tuple[str, ...], form: str | None, output: str | None, verbose: int, quiet: bool,
    color: str, **flags: Any,
) -> int:  # fmt: skip
    """Show, line by line, what the GPU would run: eager, compiled, and what fusion saves.

    The file is imported and its entry points run once on a pretended GPU, in a child process. A
    PATH that ends in .json is a report saved by -o, shown again.
    """
    saved = [path for path in paths if path.endswith(".json")]
    if len(saved) > 1 or (saved and len(paths) > 1):
        raise KpredictError("A saved report is shown alone.", "Give one .json file.")
    report = _saved(saved[0]) if saved else _analysed(paths, flags, verbose)
    chosen = form or ("json" if output and output.endswith(".json") else "text")
    if chosen == "json":
        from kpredict.report import json as renderer

        emit(renderer.render(report, __version__, indent=2), output)
    else:
        from kpredict.report import text

        style = text.style_for(
            sys.stdout, color=use_color(color, output), verbose=verbose, quiet=quiet,
            to_file=output is not None,
        )  # fmt: skip
        emit(text.render(report, style), output)
    for failure in report.errors:
        where = f"{failure.file}::{failure.name}" if failure.name else failure.file
        if failure.line:
            where = f"{failure.file}:{failure.line}" + (f" {failure.name}" if failure.name else "")
        click.echo(f"kpredict: error: {where}: {failure.message}", err=True)
        if failure.hint:
            click.echo(f"  hint: {failure.hint}", err=True)
    return 2 if report.errors else 0


def _analysed(paths: Sequence[str], flags: Mapping[str, Any], verbose: int) -> Report:
    from kpredict.session.ask import Answer, analyse

    asked = requests(paths, **flags)
    on_terminal = sys.stderr.isatty()

    def begun(request: Request) -> None:
        if on_terminal:  # a line that the next one writes over
            at = f" ({asked.index(request) + 1} of {len(asked)})" if len(asked) > 1 else ""
            sys.stderr.write(f"\r\x1b[Kanalysing {request.file}{at}")
            sys.stderr.flush()

    def heard(answer: Answer) -> None:
        if on_terminal:
            sys.stderr.write("\r\x1b[K")
        if verbose and answer.output:
            sys.stderr.write(answer.output)

    return analyse(asked, heard, begun)


def _saved(path: str) -> Report:
    """A report read back, with the source text of the files that are still there."""
    from kpredict.report.load import load

    try:
        report = load(Path(path).read_text(encoding="utf-8"), path)
    except OSError as error:
        raise KpredictError(f"{path} cannot be read: {error.strerror}.") from None
    return replace(report, entries=tuple(_with_source(e) for e in report.entries))


def _with_source(entry: Entry) -> Entry:
    try:
        return replace(entry, source=Path(entry.file).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return entry
