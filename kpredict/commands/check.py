"""`kpredict check PATH…`: findings, with exit code 1 when there are any."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from kpredict import __version__
from kpredict.commands._options import emit
from kpredict.model import KpredictError

FORMATS = ("text", "json", "github", "sarif", "markdown", "junit")


def _release(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None and not re.match(r"\d+\.\d+", value):
        raise click.BadParameter(f"{value!r} is no release: write 2.13.0.")
    return value


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH[::NAME]...]")
@click.option(
    "--static", is_flag=True, help="Only read: nothing is imported or run, torch is not needed."
)
@click.option(
    "--select", multiple=True, metavar="CODES", help="Codes or prefixes to report: KP1,KP203; ALL."
)
@click.option("--ignore", multiple=True, metavar="CODES", help="Codes or prefixes to leave out.")
@click.option("--exclude", multiple=True, metavar="PATTERN", help="Files or folders to leave out.")
@click.option("--target", metavar="GPU", help="The GPU to predict for; default h100.")
@click.option(
    "--torch", metavar="RELEASE", callback=_release,
    help="The torch to count for, as 2.13.0; default the installed one.",
)  # fmt: skip
@click.option("--chain", type=click.IntRange(2), help="KP101: kernels in a row; default 3.")
@click.option(
    "--round-trip-mb", type=click.FloatRange(0), help="KP201: size of an array; default 64."
)
@click.option("--tiny", type=click.IntRange(1), help="KP105: kernels on single numbers; default 4.")
@click.option(
    "--max-eager", type=int, metavar="N", help="Budget of every NAME given: eager kernels."
)
@click.option("--max-compiled", type=int, metavar="N", help="Budget: compiled kernels.")
@click.option(
    "--max-round-trips", type=int, metavar="N", help="Budget: round trips (not with --static)."
)
@click.option("--baseline", metavar="FILE", help="Findings listed there are let pass.")
@click.option(
    "--update-baseline",
    is_flag=True,
    help="Write the baseline; it only shrinks. Not when CI is set.",
)
@click.option("-f", "--format", "form", type=click.Choice(FORMATS), help="Default text.")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False), metavar="FILE", help="Write there."
)
@click.option("-j", "--jobs", type=click.IntRange(1), help="Processes; default the number of CPUs.")
@click.option(
    "--cache/--no-cache", "cache", default=None, help="Remember unchanged files in .kpredict_cache."
)
@click.option("--config", metavar="FILE", help="A pyproject.toml to read instead of the nearest.")
@click.option("--isolated", is_flag=True, help="Read no configuration.")
@click.option("--no-plugins", is_flag=True, help="Load no plugins of the configuration.")
@click.option("--stdin-filename", default="<stdin>", metavar="NAME", help="What `-` is called.")
@click.option("--exit-zero", is_flag=True, help="Exit 0 in spite of findings.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@click.option("--show-settings", is_flag=True, help="Print the settings and files, check nothing.")
def command(
    paths: tuple[str, ...], static: bool, form: str | None, output: str | None, **flags: Any
) -> int:
    """Find what costs launches, round trips and syncs; exit 1 when something is found.

    With --static user code is never imported or run. Without it, what was found in the source is
    held against one run on a pretended GPU, entries' budgets are checked exactly, and findings that
    do not stand are removed. `kpredict explain CODE` says what a code means.
    """
    from kpredict.config import first
    from kpredict.findings.results import gather
    from kpredict.findings.run import check_files

    settings = _Settings(paths, static, flags)
    if flags["show_settings"]:
        emit(settings.text(), output)
        return 0
    settings.require_budgets()
    checked = check_files(
        settings.files, settings.options, jobs=settings.jobs, cache=settings.cache,
        stdin=sys.stdin.buffer.read() if "-" in settings.files else None,
        stdin_name=flags["stdin_filename"], heard=_progress(len(settings.files), flags["quiet"]),
    )  # fmt: skip
    findings = [f for c in checked for f in c.findings if settings.wants(f.path, f.function)]
    notes: list[str] = []
    if not static:
        findings = _deeper(settings, findings, notes)
    kept, known = _against_baseline(settings, findings, flags["update_baseline"])
    results = gather(settings.options.target, checked, kept, known, notes)
    chosen = form or _by_ending(output) or "text"
    emit(_render(chosen, results), output)
    if results.errors:
        return 2
    return 1 if results.findings and not first(flags["exit_zero"] or None, False) else 0


class _Settings:
    """Flags over environment over file."""

    def __init__(self, paths: Sequence[str], static: bool, flags: dict[str, Any]) -> None:
        from kpredict.config import Config, find_file, first, load, split_codes
        from kpredict.eager.user_rules import parse_rows, register
        from kpredict.findings.cache import FOLDER, Cache, stamp
        from kpredict.findings.files import files_of
        from kpredict.findings.options import Budget, Options
        from kpredict.findings.reading import Limits
        from kpredict.findings.registry import rules
        from kpredict.plugins import NONE, Plugins
        from kpredict.plugins import load as load_plugins
        from kpredict.request import split_path
        from kpredict.source.infer.counting import installed_release
        from kpredict.targets import target

        split = [split_path(p) if p != "-" else ("-", "") for p in (paths or (".",))]
        self.names = [(f, n) for f, n in split if n]
        whole = {f for f, n in split if not n}
        self.named_only = {f for f, _ in self.names} - whole
        start = Path(split[0][0]) if split[0][0] != "-" else Path()
        found = (
            Path(flags["config"])
            if flags["config"]
            else find_file(start if start.is_dir() else start.parent)
        )
        config = Config() if flags["isolated"] else load(found)
        self.config_file = None if flags["isolated"] else found
        self.config = config
        self.baseline_path = Path(flags["baseline"]) if flags["baseline"] else (
            (config.root or Path()) / config.baseline if config.baseline else None)  # fmt: skip
        budgets = {
            e.path: Budget(e.max_eager, e.max_compiled, e.max_round_trips) for e in config.entries
        }
        asked = Budget(flags["max_eager"], flags["max_compiled"], flags["max_round_trips"])
        if asked != Budget():
            if not self.names:
                raise KpredictError("A budget needs an entry.", "Write PATH::NAME --max-eager N.")
            budgets = {f"{f}::{n}": asked for f, n in self.names} | budgets
        register(parse_rows(config.rules))
        self.plugins = NONE if flags["no_plugins"] else (
            Plugins(config.plugins, str((config.root or Path()).resolve())))  # fmt: skip
        code_of_user = load_plugins(self.plugins, static=static) + repr(config.rules)
        default = Limits()
        limits = Limits(
            first(flags["chain"], config.chain, default.chain),
            first(flags["round_trip_mb"], config.round_trip_mb, default.round_trip_mb),
            first(flags["tiny"], config.tiny, default.tiny),
        )
        self.options = Options(
            split_codes(first(flags["select"], config.select) or (), rules()),
            split_codes(first(flags["ignore"], config.ignore) or (), rules()),
            limits,
            target(first(flags["target"], config.target), flags["torch"] or installed_release()),
            budgets, {e.path: e.inputs for e in config.entries}, code_of_user,
        )  # fmt: skip
        for e in config.entries:
            self.options.inputs_of(e.path.rpartition("::")[0])  # a fault in them is said at once
        self.files = files_of([f for f, _ in split], (*config.exclude, *flags["exclude"]))
        self.jobs: int = first(flags["jobs"], config.jobs, os.cpu_count() or 1)
        remembers = first(flags["cache"], config.cache, True)
        where = (config.root or Path()) / FOLDER
        self.cache = Cache(where, stamp(self.options)) if remembers else None

    def require_budgets(self) -> None:
        """Raises KpredictError when a file of this check lacks what has a budget."""
        from kpredict.findings.budgets import require
        from kpredict.findings.files import decode, read_bytes
        from kpredict.findings.options import is_of

        for path in self.files:
            names = [k.rpartition("::")[2] for k in self.options.budgets if is_of(k, path)]
            if names and path.endswith(".py"):
                try:
                    text = decode(read_bytes(path))
                except (OSError, ValueError, SyntaxError, LookupError):
                    continue  # the check itself says so
                require(path, text, names)

    def wants(self, path: str, function: str) -> bool:
        """Whether a finding is inside what was asked for: `file.py::name` asks for one entry."""
        if path not in self.named_only:
            return True
        return any(
            f == path and (function == n or function.startswith(n + ".")) for f, n in self.names
        )

    def text(self) -> str:
        rules = ", ".join(r.code for r in self.options.rules)
        lines = [
            f"config: {self.config_file or 'none'}", f"rules: {rules}",
            f"target: {self.options.target.name}", f"limits: {self.options.limits}",
            f"baseline: {self.baseline_path or 'none'}", f"jobs: {self.jobs}",
            f"plugins: {', '.join(self.plugins.names) or 'none'}",
            *(f"budget: {k} {b}" for k, b in self.options.budgets.items()),
            *(f"file: {f}" for f in self.files),
        ]  # fmt: skip
        return "\n".join(lines) + "\n"


def _progress(total: int, quiet: bool) -> Any:
    if quiet or total < 20 or not sys.stderr.isatty():
        return None

    def heard(done: int, everything: int) -> None:
        if done % 10 == 0 or done == everything:
            sys.stderr.write(f"\r{done}/{everything} files" + ("\n" if done == everything else ""))
            sys.stderr.flush()

    return heard


def _deeper(settings: _Settings, findings: list[Any], notes: list[str]) -> list[Any]:
    """Run the files that have findings or budgets, once, and let the plans decide."""
    from dataclasses import replace
    from importlib.util import find_spec

    from kpredict.findings.confirm import budgets_of_report, confirm
    from kpredict.findings.options import is_of

    budgeted = [k for k in settings.options.budgets if k.rpartition("::")[0]]
    wanted = {f.path for f in findings if f.cell is None and f.path.endswith(".py")}
    wanted |= {f for f in settings.files for k in budgeted if is_of(k, f)}
    wanted = {w for w in wanted if Path(w).is_file()}
    if not wanted:
        return findings
    if find_spec("torch") is None:
        notes.append(
            "torch is not installed: the findings are of the source alone (as with --static)"
        )
        return findings
    from kpredict.commands._options import requests
    from kpredict.model import Mode
    from kpredict.session.ask import analyse
    from kpredict.session.remember import Memory

    modes = [Mode.EAGER.value]
    if any(b.max_compiled is not None for b in settings.options.budgets.values()):
        modes.append(Mode.COMPILED.value)
    inputs = {e.path: e.inputs for e in settings.config.entries if e.inputs}
    asked = []
    for path in sorted(wanted):
        names = [n for f, n in settings.names if f == path]
        told = [
            i
            for key, given in inputs.items()
            if path.endswith(key.rpartition("::")[0])
            for i in given
        ]
        asked += requests([f"{path}::{n}" for n in names] or [path], inputs=told, modes=modes,
                          target=settings.options.target.name)  # fmt: skip
    memory = None if settings.cache is None else Memory()
    report = analyse([replace(r, plugins=settings.plugins) for r in asked], memory=memory)
    kept = [f for f in confirm(findings, report) if f.code not in ("KP401", "KP402")]
    kept += [f for f in findings if f.code in ("KP401", "KP402") and not any(
        e.name.split(".")[0] == f.function.split(".")[0] for e in report.entries)]  # fmt: skip
    kept += budgets_of_report(report, settings.options.budgets)
    for failure in report.errors:
        notes.append(
            f"{failure.file}: not run, its findings are of the source alone: {failure.message}"
        )
    return sorted(kept)


def _against_baseline(
    settings: _Settings, findings: list[Any], update: bool
) -> tuple[list[Any], int]:
    from kpredict.findings import baseline

    path = settings.baseline_path
    if path is None:
        if update:
            raise KpredictError("--update-baseline needs a file.", "Give --baseline FILE.")
        return findings, 0
    in_ci = bool(os.environ.get("CI"))
    if update and not in_ci:
        if path.exists():
            before = baseline.load(path)
            after = before.shrunk(findings)
            new, known = after.split(findings)
        else:
            after = baseline.of(findings)
            new, known = [], findings
        baseline.save(path, after)
        return new, len(known)
    if update:
        click.echo("kpredict: CI is set: the baseline is not written", err=True)
    before = baseline.load(path)
    new, known = before.split(findings)
    if len(known) < before.total:
        gone = before.total - len(known)
        click.echo(f"kpredict: {gone} in the baseline are gone: run --update-baseline", err=True)
    return new, len(known)


def _by_ending(output: str | None) -> str | None:
    endings = {".json": "json", ".sarif": "sarif", ".md": "markdown", ".xml": "junit"}
    return endings.get(Path(output).suffix) if output else None


def _render(form: str, results: Any) -> str:
    from importlib import import_module

    renderer = import_module(f"kpredict.report.findings_{form}")
    if form in ("json", "sarif"):
        return str(renderer.render(results, __version__))
    return str(renderer.render(results))
