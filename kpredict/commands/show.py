"""`kpredict show PATH`: the main job, source annotated with what the GPU would run."""

from __future__ import annotations

import sys
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
)  # fmt: skip


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

    The file is imported and its entry points run once on a pretended GPU, in a child process.
    """
    from kpredict.session.ask import Answer, analyse

    def heard(answer: Answer) -> None:
        if verbose and answer.output:
            sys.stderr.write(answer.output)

    report = analyse(requests(paths, **flags), heard)
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
