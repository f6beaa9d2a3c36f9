"""The command line: find the command, run it, turn its end into an exit code. No logic.

In: arguments. Out: 0 done; 1 something that was asked to fail did; 2 usage, input, analysis or
internal error. Each command is a module under `kpredict/commands/` with a `command` in it; adding
one is adding a file. A command returns its exit code and raises KpredictError for what the user
can mend.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from collections.abc import Sequence

import click

from kpredict.model import KpredictError
from kpredict.session.warm import collect_seldom

PACKAGE = "kpredict.commands"
_FIRST = ("show", "check", "verify", "trace", "diff")  # the order of `--help`; the rest by name


class Commands(click.Group):
    """The modules of `kpredict/commands`, imported when asked for; a bare path means `show`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        package = importlib.import_module(PACKAGE)
        names = [
            m.name for m in pkgutil.iter_modules(package.__path__) if not m.name.startswith("_")
        ]
        return sorted(names, key=lambda n: (_FIRST.index(n) if n in _FIRST else len(_FIRST), n))

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.list_commands(ctx):
            return None
        command = importlib.import_module(f"{PACKAGE}.{name}").command
        assert isinstance(command, click.Command)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = {o for p in self.get_params(ctx) for o in p.opts}
        if args and args[0] not in own and args[0] not in self.list_commands(ctx):
            args = ["show", *args]
        return super().parse_args(ctx, args)


def _print_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from kpredict.commands._version import version_line

        click.echo(version_line())
        ctx.exit()


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "KPREDICT"},
    epilog="`kpredict FILE` is `kpredict show FILE`. Your file is imported and run, once, on a "
    "pretended GPU, in a child process; `kpredict check --static` reads it only.",
)
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_print_version,
    help="Print the versions of kpredict, torch and CUDA and the default target.",
)  # fmt: skip
def cli() -> None:
    """Which CUDA kernels PyTorch code launches, eager and compiled, without a GPU."""


def main(args: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code."""
    collect_seldom()
    try:
        code = cli.main(args, prog_name="kpredict", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except KpredictError as error:
        click.echo(f"kpredict: error: {error.message}", err=True)
        if error.hint:
            click.echo(f"  hint: {error.hint}", err=True)
    except click.ClickException as error:
        error.show()
    except (click.Abort, KeyboardInterrupt):
        click.echo("kpredict: interrupted", err=True)
        return 130
    except BrokenPipeError:  # the reader of our output has gone, e.g. `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Exception as error:
        if os.environ.get("KPREDICT_DEBUG"):
            raise
        click.echo(
            f"kpredict: internal error: {type(error).__name__}: {error}\n"
            "  hint: set KPREDICT_DEBUG=1 for the traceback, and please report it.",
            err=True,
        )
    return 2
