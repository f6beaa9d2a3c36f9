"""What the user asks of one file: a frozen value that travels to the child process.

In: flags and configuration. Out: a Request. Standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kpredict.model import KpredictError, Mode, Phase
from kpredict.plugins import NONE, Plugins

FORWARD = (Phase.FORWARD,)
TRAINING = (Phase.FORWARD, Phase.BACKWARD, Phase.STEP)
COMPILE_MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


@dataclass(frozen=True, slots=True)
class Request:
    """One file and how to analyse it.

    `file` is the path as the user wrote it; `names` are the entry points asked for by `::name`,
    empty for every one whose inputs can be known. `inputs` are `NAME=SPEC` texts as in `--input`.
    `phases` None means what the file's MODE says, else forward. `train` and `grad` None mean what
    the phases imply. `stated` maps a line, or "*", to the value a device read gives there.
    `launch_us` None means the target's own time per launch.
    `compile_options` are torch.compile's (mode, dynamic, fullgraph) in the compiled plan, over what
    the file's own call says.
    `rules` are the user's own, as rows (`eager.user_rules.UserRow`); `entry_inputs` are inputs by
    entry, as the configuration gives them; `plugins` are modules to import before the file.
    `text` is run instead of what the file holds: the same program, changed.
    """

    file: str
    names: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    dims: Mapping[str, int] = field(default_factory=dict)
    modes: tuple[Mode, ...] = (Mode.EAGER, Mode.COMPILED, Mode.AS_WRITTEN)
    phases: tuple[Phase, ...] | None = None
    train: bool | None = None
    grad: bool | None = None
    compile_optimizer: bool = False
    stated: Mapping[int | str, float] = field(default_factory=dict)
    target: str | None = None
    cuda: int | None = None
    timeout: float = 120.0
    rules: tuple[Any, ...] = ()
    entry_inputs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    plugins: Plugins = field(default=NONE, kw_only=True)
    compile_options: Mapping[str, Any] = field(default_factory=dict)
    text: str | None = None
    launch_us: float | None = None


def split_path(text: str) -> tuple[str, str]:
    """`f.py::Model.forward` → ("f.py", "Model.forward"); no `::` gives an empty name."""
    file, _, name = text.partition("::")
    return file, name


def parse_dims(texts: Sequence[str]) -> dict[str, int]:
    """`["b=8,n=128"]` → {"b": 8, "n": 128}. Raises KpredictError."""
    dims: dict[str, int] = {}
    for part in (p for text in texts for p in text.split(",") if p.strip()):
        name, equals, value = part.partition("=")
        if not equals or not name.strip().isidentifier() or not value.strip().isdigit():
            raise KpredictError(f"--dim {part!r} is not NAME=NUMBER.", "Write --dim b=8,n=128.")
        dims[name.strip()] = int(value)
    return dims


def parse_stated(texts: Sequence[str]) -> dict[int | str, float]:
    """`["12=0", "*=1.5"]` → {12: 0.0, "*": 1.5}. Raises KpredictError."""
    stated: dict[int | str, float] = {}
    for text in texts:
        line, equals, value = text.partition("=")
        try:
            if not equals:
                raise ValueError
            word = value.strip().lower()
            number = float(word == "true") if word in ("true", "false") else float(word)
            stated["*" if line.strip() == "*" else int(line)] = number
        except ValueError:
            raise KpredictError(
                f"--assume {text!r} is not LINE=VALUE.",
                "Write --assume 12=0 for the read on line 12, or --assume '*=1' for all.",
            ) from None
    return stated
