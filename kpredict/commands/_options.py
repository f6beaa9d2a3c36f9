"""Flags that several commands share, and how they become Requests."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kpredict.model import KpredictError, Mode, Phase
from kpredict.plugins import Plugins
from kpredict.request import (
    COMPILE_MODES,
    FORWARD,
    TRAINING,
    Request,
    parse_dims,
    parse_stated,
    split_path,
)

if TYPE_CHECKING:
    from kpredict.config import Config

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def _compose(*decorators: Decorator) -> Decorator:
    def apply(function: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return apply


SWEEP = "NAME=N,N,...|LO..HI[:xF]"

paths_argument = click.argument("paths", nargs=-1, required=True, metavar="PATH[::NAME]...")

target_options = _compose(
    click.option("--target", metavar="GPU", help="The GPU to predict for; default h100."),
    click.option(
        "--cuda", type=click.Choice(["12", "13"]),
        help="The CUDA release torch was built with, where it matters; default 13.",
    ),
    click.option(
        "--launch-us", type=click.FloatRange(min=0), metavar="US",
        help="What one launch takes the host, for the bound on time; default by GPU.",
    ),
)  # fmt: skip

analysis_options = _compose(
    click.option(
        "--input", "inputs", multiple=True, metavar="NAME=SPEC",
        help="An argument: x=f32[64,128], n==3, act=\"relu\", xs.0=f32[4]. Repeatable.",
    ),
    click.option(
        "--dim", "dims", multiple=True, metavar="NAME=N,...",
        help="Sizes of named dimensions in annotations and inputs.",
    ),
    click.option(
        "--phases", type=click.Choice(["forward", "training"]),
        help="forward: inference; training: also backward and, with make_optimizer, the step.",
    ),
    click.option("--train/--eval", "train", default=None, help="Override train() or eval()."),
    click.option("--grad/--no-grad", "grad", default=None, help="Override the grad mode."),
    click.option(
        "--mode", "modes", type=click.Choice([m.value for m in Mode]), multiple=True,
        help="Which plans to make; default all.",
    ),
    click.option(
        "--compile-optimizer", is_flag=True,
        help="In the compiled plan, compile the optimizer's step too.",
    ),
    click.option(
        "--compile-mode", type=click.Choice(COMPILE_MODES),
        help="torch.compile's mode in the compiled plan; default what the file's own call says.",
    ),
    click.option(
        "--dynamic/--no-dynamic", default=None, help="torch.compile's dynamic=, likewise."
    ),
    click.option(
        "--fullgraph", is_flag=True, help="A graph break is an error in the compiled plan."
    ),
    click.option(
        "--assume", multiple=True, metavar="LINE=VALUE",
        help="What a read of the device's data on LINE gives; '*=VALUE' for every one.",
    ),
    click.option(
        "--timeout", type=click.FloatRange(min=0.1), default=120.0, show_default=True,
        metavar="SECONDS", help="Give up on a file after this long.",
    ),
)  # fmt: skip

output_options = _compose(
    click.option(
        "-o", "--output", type=click.Path(dir_okay=False), metavar="FILE",
        help="Write the result to FILE; its ending picks the format unless -f does.",
    ),
    click.option("-v", "--verbose", count=True, help="More: every launch, the file's own output."),
    click.option("-q", "--quiet", is_flag=True, help="Less: the answer only."),
    click.option(
        "--color", type=click.Choice(["auto", "always", "never"]), default="auto",
        help="When to colour; auto honours NO_COLOR and FORCE_COLOR.",
    ),
)  # fmt: skip


def requests(
    paths: Sequence[str],
    *,
    inputs: Sequence[str] = (),
    dims: Sequence[str] = (),
    phases: str | None = None,
    train: bool | None = None,
    grad: bool | None = None,
    modes: Sequence[str] = (),
    compile_optimizer: bool = False,
    compile_mode: str | None = None,
    dynamic: bool | None = None,
    fullgraph: bool = False,
    assume: Sequence[str] = (),
    timeout: float = 120.0,
    target: str | None = None,
    cuda: str | None = None,
    launch_us: float | None = None,
) -> list[Request]:
    """One Request per file, in the order given; several `f.py::name` of one file join.

    Raises KpredictError for flags that cannot be understood and files that are not there.
    """
    from kpredict.eager.user_rules import parse_rows
    from kpredict.source.inputs import parse_input
    from kpredict.targets import target as find_target

    config = config_for(paths)
    target = target or config.target
    find_target(target)
    for text in inputs:
        parse_input(text)
    names: dict[str, list[str]] = {}
    for path in paths:
        file, name = split_path(path)
        for found in _files(file):
            names.setdefault(found, []).extend([name] if name else [])
    rules = tuple(parse_rows(config.rules))
    chosen = tuple(Mode(m) for m in modes) or tuple(Mode)
    given = {"mode": compile_mode, "dynamic": dynamic, "fullgraph": fullgraph or None}
    options = {name: value for name, value in given.items() if value is not None}
    wanted: tuple[Phase, ...] | None = {"forward": FORWARD, "training": TRAINING}.get(phases or "")
    return [
        Request(
            file, tuple(entry), tuple(inputs), parse_dims(dims), chosen, wanted, train, grad,
            compile_optimizer, parse_stated(assume), target, int(cuda) if cuda else None, timeout,
            rules, entry_inputs(config, file), options, launch_us=launch_us,
            plugins=plugins_of(config),
        )
        for file, entry in names.items()
    ]  # fmt: skip


def config_for(paths: Sequence[str]) -> Config:
    """The configuration in the pyproject.toml nearest to the first path."""
    from kpredict.config import find_file, load

    start = Path(split_path(paths[0])[0]) if paths else Path()
    return load(find_file(start if start.is_dir() else start.parent))


def plugins_of(config: Config) -> Plugins:
    """The modules with the user's own rules, and where they lie."""
    return Plugins(config.plugins, str(config.root or Path().resolve()))


def entry_inputs(config: Config, file: str) -> dict[str, tuple[str, ...]]:
    """What `[[tool.kpredict.entry]]` says of the inputs of this file's entries, by name."""
    found: dict[str, tuple[str, ...]] = {}
    for entry in config.entries:
        path, name = split_path(entry.path)
        if (
            name
            and entry.inputs
            and ((config.root or Path()) / path).resolve() == Path(file).resolve()
        ):
            found[name] = entry.inputs
    return found


def _files(path: str) -> list[str]:
    """The file itself, or the Python files of a folder, sorted; hidden folders are left out."""
    where = Path(path)
    if where.is_dir():
        found = sorted(
            str(p)
            for p in where.rglob("*.py")
            if not any(part.startswith(".") for part in p.relative_to(where).parts)
        )
        if not found:
            raise KpredictError(f"There is no Python file in {path}.")
        return found
    if not where.exists() and not where.suffix and "/" not in path:
        raise KpredictError(
            f"There is no file {path} and no such command.", "`kpredict --help` lists the commands."
        )
    return [path]  # a file that cannot be read is one failure among the answers


def use_color(choice: str, output: str | None = None) -> bool:
    """Whether to colour: the flag, else FORCE_COLOR, NO_COLOR, TERM=dumb, else a terminal."""
    if choice != "auto":
        return choice == "always"
    if output is not None:
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return sys.stdout.isatty()


def emit(text: str, output: str | None = None) -> None:
    """The result: to stdout, or to a file that is replaced whole."""
    if text and not text.endswith("\n"):
        text += "\n"
    if output is None:
        sys.stdout.write(text)
        return
    where = Path(output)
    try:
        partial = where.with_name(f".{where.name}.{os.getpid()}")
        partial.write_text(text, encoding="utf-8")
        partial.replace(where)
    except OSError as error:
        raise KpredictError(f"{output} cannot be written: {error.strerror}.") from None
