"""`kpredict diff OLD.json NEW.json`, `kpredict diff --rev main PATH`: what a change costs."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import click

from kpredict import __version__
from kpredict.commands._options import emit
from kpredict.model import KpredictError


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="OLD.json NEW.json | PATH...")
@click.option(
    "--rev", metavar="REVISION", help="Compare the files as they are with those of a git revision."
)
@click.option("--fail-on-increase", is_flag=True, help="Exit 1 when a number went up.")
@click.option(
    "-f", "--format", "form", type=click.Choice(["text", "markdown", "json"]), default="text"
)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False), metavar="FILE", help="Write there."
)
def command(
    paths: tuple[str, ...], rev: str | None, fail_on_increase: bool, form: str, output: str | None
) -> int:
    """Compare two saved reports, or the files with an earlier revision of them.

    Numbers are kernels, round trips, bytes and syncs of every entry, mode and phase; for saved
    checks, findings per function and code. An entry that is new is no increase. Exit 2 when
    a file cannot be analysed as it is now: nobody knows what went up.
    """
    from kpredict.report import difference

    if rev is None:
        if len(paths) != 2:
            raise click.UsageError("Give two saved reports, or --rev REVISION and paths.")
        old, new = (difference.load(_read(p), p) for p in paths)
    else:
        paths = tuple(os.path.relpath(p) if os.path.isabs(p) else p for p in paths)
        old, new = _at_revision(rev, paths), _now(paths)
    found = difference.compare(old, new)
    render = {"text": difference.render_text, "markdown": difference.render_markdown,
              "json": difference.render_json}[form]  # fmt: skip
    emit(render(found), output)
    for when, report in (("before", old), ("now", new)):
        for said in difference.failures(report):
            click.echo(f"kpredict: not compared, {when}: {said}", err=True)
    if difference.failures(new):
        return 2
    return 1 if fail_on_increase and found.increases else 0


def _read(path: str) -> str:
    try:
        return Path(path).read_text("utf-8")
    except OSError as error:
        raise KpredictError(f"{path} cannot be read: {error.strerror}.") from None


def _now(paths: tuple[str, ...], folder: Path | None = None) -> dict[str, object]:
    """The report of the paths, as saved JSON, with paths as the user wrote them."""
    import json

    from kpredict.commands._options import requests
    from kpredict.report import json as renderer
    from kpredict.session.ask import analyse

    given = [str(folder / p) if folder is not None else p for p in paths]
    data = json.loads(renderer.render(analyse(requests(given)), __version__))
    if folder is not None:
        for entry in (*data["entries"], *data["errors"]):
            entry["file"] = str(Path(entry["file"]).relative_to(folder))
    found: dict[str, object] = data
    return found


def _at_revision(rev: str, paths: tuple[str, ...]) -> dict[str, object]:
    """The same files at a revision, from a work tree made for it and removed again."""
    top = Path(_git("rev-parse", "--show-toplevel").strip())
    try:
        commit = _git("rev-parse", "--verify", "--quiet", f"{rev}^{{commit}}").strip()
    except KpredictError:
        raise KpredictError(
            f"There is no revision {rev!r} in this repository.",
            "A shallow clone has few: git fetch it first.",
        ) from None
    inside = Path.cwd().resolve().relative_to(top.resolve())
    with tempfile.TemporaryDirectory(prefix="kpredict-") as scratch:
        tree = Path(scratch).resolve() / "tree"
        _git("worktree", "add", "--detach", "--quiet", str(tree), commit)
        try:
            there = tuple(p for p in paths if (tree / inside / p.partition("::")[0]).exists())
            return _now(there, tree / inside) if there else {"entries": []}
        finally:
            _git("worktree", "remove", "--force", str(tree))


def _git(*args: str) -> str:
    try:
        done = subprocess.run(["git", *args], capture_output=True, text=True, check=True)
    except FileNotFoundError:
        raise KpredictError("git is not installed.", "Compare two saved reports instead.") from None
    except subprocess.CalledProcessError as error:
        said = error.stderr.strip().splitlines()
        raise KpredictError(
            f"git {args[0]}: {said[0] if said else 'failed'}.",
            "Is this a git repository, and the revision there?",
        ) from None
    return done.stdout
