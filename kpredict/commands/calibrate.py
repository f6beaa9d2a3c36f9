"""`kpredict calibrate BUNDLE...`: a measurement becomes rules that make predictions exact."""

from __future__ import annotations

from typing import Any

import click

from kpredict.commands._options import analysis_options, emit, requests, target_options


@click.command()
@click.argument("bundles", nargs=-1, required=True, metavar="BUNDLE...")
@click.option(
    "--file", "paths", multiple=True, metavar="PATH",
    help="The files that were measured, where they are not at the bundle's paths.",
)  # fmt: skip
@analysis_options
@target_options
@click.option("-o", "--output", type=click.Path(dir_okay=False), metavar="FILE")
def command(
    bundles: tuple[str, ...], paths: tuple[str, ...], output: str | None, **flags: Any
) -> int:
    """Print rows for pyproject.toml that make the predictions equal to what was measured.

    A bundle comes from `kpredict verify --save`. Each row pins what one op launched for the
    arrays it read; paste them under [tool.kpredict].
    """
    from kpredict.verify.bundle import read_bundle
    from kpredict.verify.calibrate import calibrate, toml
    from kpredict.verify.run import check_bundle

    found = []
    for path in bundles:
        bundle = read_bundle(path)
        files = paths or tuple(dict.fromkeys(e.file for e in bundle.entries))
        found.append(check_bundle(requests(files, **flags), bundle))
    emit(toml(calibrate(found)), output)
    return 2 if any(f.errors for f in found) else 0
