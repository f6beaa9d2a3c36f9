"""`python -m kpredict.verify FILE`: the verify command where click is not installed.

A machine with a GPU may have torch and nothing else; this needs no more than that.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from kpredict.config import find_file, load
from kpredict.eager.user_rules import parse_rows
from kpredict.model import KpredictError, Mode, Phase
from kpredict.plugins import Plugins
from kpredict.request import Request, parse_dims, parse_stated, split_path
from kpredict.verify.answer import FORMATS, Choice, answer, save

_PHASES: dict[str | None, tuple[Phase, ...] | None] = {
    None: None, "forward": (Phase.FORWARD,), "training": tuple(Phase),
}  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(argv)
    try:
        names: dict[str, list[str]] = {}
        for path in options.paths:
            file, name = split_path(path)
            names.setdefault(file, []).extend([name] if name else [])
        start = Path(split_path(options.paths[0])[0]).parent
        config = load(find_file(start))
        rules = tuple(parse_rows(config.rules))
        requests = [
            Request(
                file, tuple(entries), tuple(options.input), parse_dims(options.dim),
                tuple(Mode(m) for m in options.mode) or tuple(Mode), _PHASES[options.phases],
                stated=parse_stated(options.assume), target=options.target,
                timeout=options.timeout, rules=rules,
                plugins=Plugins(config.plugins, str(config.root or Path().resolve())),
            )
            for file, entries in names.items()
        ]  # fmt: skip
        choice = Choice(
            options.format, options.output, options.verbose, options.if_cuda, options.save,
            options.source, options.sweep, options.seconds, options.jobs,
        )  # fmt: skip
        text, code = answer(requests, choice)
        if options.output:
            save(text, options.output)
        else:
            sys.stdout.write(text)
        return code
    except KpredictError as error:
        print(f"kpredict: error: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m kpredict.verify", description=answer.__doc__)
    add = parser.add_argument
    add("paths", nargs="+", metavar="PATH[::NAME]")
    add("--input", action="append", default=[], metavar="NAME=SPEC")
    add("--dim", action="append", default=[], metavar="NAME=N,...")
    add("--phases", choices=["forward", "training"])
    add("--mode", action="append", default=[], choices=[m.value for m in Mode])
    add("--assume", action="append", default=[], metavar="LINE=VALUE")
    add("--target", metavar="GPU")
    add("--timeout", type=float, default=300.0, metavar="SECONDS")
    add("--if-cuda", action="store_true", help="without a GPU say so and exit 0")
    add("--save", metavar="FILE", help="keep the measurement as a bundle")
    add("--from", dest="source", metavar="FILE", help="a bundle or trace instead of measuring")
    add("--sweep", metavar="NAME=N,...")
    add("--seconds", type=float, default=1.0, help="how long to time each mode; 0 only counts")
    add("--jobs", type=int, default=1, metavar="N", help="files at a time; times get worse")
    add("-f", "--format", choices=["text", *FORMATS])
    add("-o", "--output", metavar="FILE")
    add("-v", "--verbose", action="store_true")
    return parser


if __name__ == "__main__":
    sys.exit(main())
