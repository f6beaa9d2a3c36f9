"""`kpredict show PATH`: the main job, source annotated with what the GPU would run."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from kpredict import __version__
from kpredict.commands._options import (
    SWEEP,
    analysis_options,
    config_for,
    emit,
    output_options,
    paths_argument,
    requests,
    target_options,
    use_color,
)
from kpredict.commands._progress import Progress
from kpredict.config import first
from kpredict.model import Comparison, Entry, Failure, KpredictError, Report
from kpredict.sweep import parse_sweep
from kpredict.targets import parse_targets


@click.command()
@paths_argument
@analysis_options
@target_options
@click.option(
    "--targets",
    metavar="GPU,GPU,...",
    help="Counts for several GPUs side by side; 'all' for every one known.",
)
@click.option(
    "--sweep", metavar=SWEEP,
    help="Sizes side by side, of a named dimension or of an input: n=64,512, n=1e2..1e8 (times ten "
    "each) or n=64..4096:x2; and where launches cease to set the time.",
)  # fmt: skip
@click.option(
    "--cache/--no-cache",
    "cache",
    default=None,
    help="Answer from an earlier run while nothing it rests on has changed; default on.",
)
@click.option("-f", "--format", "form", type=click.Choice(["text", "json"]), help="Default text.")
@click.option(
    "--what-if",
    is_flag=True,
    help="Which changes of the source would launch or move less, each predicted; -v shows edits.",
)
@output_options
def command(
    paths: tuple[str, ...], form: str | None, output: str | None, verbose: int, quiet: bool,
    color: str, targets: str | None, sweep: str | None, what_if: bool, cache: bool | None,
    **flags: Any,
) -> int:  # fmt: skip
    """Show, line by line, what the GPU would run: eager, compiled, and what fusion saves.

    The file is imported and its entry points run once on a pretended GPU, in a child process. A
    PATH that ends in .json is a report saved by -o, shown again.
    """
    saved = [path for path in paths if path.endswith(".json")]
    if len(saved) > 1 or (saved and len(paths) > 1):
        raise KpredictError("A saved report is shown alone.", "Give one .json file.")
    found = (
        _saved(saved[0])
        if saved
        else _analysed(paths, flags, targets, sweep, what_if, cache, verbose)
    )
    chosen = form or ("json" if output and output.endswith(".json") else "text")
    if chosen == "json":
        emit(_json(found), output)
    else:
        from kpredict.report import side_by_side, text

        style = text.style_for(
            sys.stdout, color=use_color(color, output), verbose=verbose, quiet=quiet,
            to_file=output is not None,
        )  # fmt: skip
        if isinstance(found, Report):
            emit(text.render(found, style), output)
        else:
            emit(side_by_side.render(found, style), output)
    failures = list(_failures(found))
    for at, failure in failures:
        where = f"{failure.file}::{failure.name}" if failure.name else failure.file
        if failure.line:
            where = f"{failure.file}:{failure.line}" + (f" {failure.name}" if failure.name else "")
        click.echo(f"kpredict: error: {at}{where}: {failure.message}", err=True)
        if failure.hint:
            click.echo(f"  hint: {failure.hint}", err=True)
    return 2 if failures else 0


def _json(found: Report | Comparison) -> str:
    from kpredict.report import comparison, json

    if isinstance(found, Report):
        return json.render(found, __version__, indent=2)
    return comparison.render(found, __version__, indent=2)


def _failures(found: Report | Comparison) -> Iterator[tuple[str, Failure]]:
    """What went wrong and, of a comparison, at which targets or sizes if not at all of them."""
    if isinstance(found, Report):
        yield from (("", failure) for failure in found.errors)
        return
    where: dict[Failure, list[str]] = {}
    for label, report in found.points:
        for failure in report.errors:
            where.setdefault(failure, []).append(label)
    for failure, labels in where.items():
        at = "" if found.varied == "target" else f"{found.varied} = "
        everywhere = len(labels) == len(found.points)
        yield "" if everywhere else f"{at}{', '.join(labels)}: ", failure


def _analysed(
    paths: Sequence[str], flags: Mapping[str, Any], targets: str | None, sweep: str | None,
    what_if: bool, cache: bool | None, verbose: int,
) -> Report | Comparison:  # fmt: skip
    """One report, or one for each target or size."""
    from kpredict.changes.predict import what_if as predict_changes
    from kpredict.session.ask import answering
    from kpredict.session.remember import Memory
    from kpredict.session.vary import over_sizes, over_targets

    if targets and sweep:
        raise KpredictError("--targets and --sweep vary one thing each.", "Give one of them.")
    if what_if and (targets or sweep):
        raise KpredictError("--what-if is for one target and size.", "Leave the other flag out.")
    if what_if and flags.get("modes") and "eager" not in flags["modes"]:
        raise KpredictError("--what-if needs the eager plan.", "Add --mode eager.")
    if targets and flags.get("target"):
        raise KpredictError("--target and --targets exclude each other.", "Give one of them.")
    asked = requests(paths, **flags)
    several = parse_targets(targets) if targets else ()
    sizes = parse_sweep(sweep) if sweep else None
    progress = Progress(asked, verbose > 0)
    memory = Memory() if first(cache, config_for(paths).cache, True) else None
    least = len(asked) + bool(several or sizes or what_if)
    with answering(least, progress.heard, progress.begun, memory) as answered:
        if several:
            return over_targets(asked, several, answered)
        if sizes is not None:
            return over_sizes(asked, sizes, answered)
        report = answered(asked)
        return predict_changes(report, asked, answered) if what_if else report


def _saved(path: str) -> Report | Comparison:
    """What -o saved, with the source text of the files that are still there."""
    from kpredict.report.comparison import read

    try:
        found = read(Path(path).read_text(encoding="utf-8"), path)
    except OSError as error:
        raise KpredictError(f"{path} cannot be read: {error.strerror}.") from None
    if isinstance(found, Comparison):
        return found
    return replace(found, entries=tuple(_with_source(e) for e in found.entries))


def _with_source(entry: Entry) -> Entry:
    try:
        return replace(entry, source=Path(entry.file).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return entry
