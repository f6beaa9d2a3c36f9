"""Child side of a measurement: load one file on the real GPU, run its entries, send what it did.

Started by `session.ask` with a folder that holds a pickled MeasureRequest, as the analyser is; but
no world is entered. Sends the Machine first, or NoCuda and nothing else.
"""

from __future__ import annotations

import os
import pickle
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from kpredict import __version__
from kpredict.model import Failure, KpredictError, Mode
from kpredict.request import Request
from kpredict.session.child import peak_mb
from kpredict.session.faults import failure
from kpredict.session.messages import Done, Message, Stage
from kpredict.session.reading import read_source
from kpredict.session.told import check_inputs
from kpredict.verify.bundle import Machine, MeasuredEntry, digest
from kpredict.verify.request import MeasureRequest, NoCuda

if TYPE_CHECKING:
    from kpredict.session.choose import Chosen, Loaded
    from kpredict.source.nouns import Source

SEED = 0


Sent = Message | Machine | MeasuredEntry | NoCuda


def main(folder: str) -> None:
    where = Path(folder)
    request: MeasureRequest = pickle.loads((where / "request").read_bytes())
    with open(where / "answer", "wb", buffering=0) as answer:

        def send(message: Sent) -> None:
            answer.write(pickle.dumps(message))

        try:
            for message in measure_file(request, send):
                send(message)
        except BaseException as error:
            send(failure(request, error))
        send(Done(peak_mb()))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def measure_file(request: MeasureRequest, send: Callable[[Sent], None]) -> Iterator[Sent]:
    """The machine, then one MeasuredEntry or Failure for each entry."""
    try:
        import torch
    except ImportError as error:
        yield NoCuda(f"torch cannot be imported: {error}")
        return
    if not torch.cuda.is_available():
        build = "" if torch.version.cuda else f" (torch {torch.__version__} is built without it)"
        yield NoCuda(f"no CUDA device{build}")
        return
    if torch.version.hip:
        yield NoCuda(f"an AMD GPU (ROCm {torch.version.hip}); kpredict predicts NVIDIA GPUs")
        return
    yield machine()
    try:
        source = read_source(request.file)
    except KpredictError as error:
        yield failure(request, error)
        return
    from kpredict.session import choose as choosing

    send(Stage("importing the file"))
    sys.dont_write_bytecode = True
    check_inputs(source, request)
    torch.manual_seed(SEED)
    loaded = _load(request, source)
    for chosen in choosing.choose(loaded, request):
        if isinstance(chosen, Failure):
            yield chosen
            continue
        send(Stage(f"measuring {chosen.name}", chosen.name))
        yield from _entry(request, source, chosen)


def _load(request: Request, source: Source) -> Loaded:
    """Import the file; as a script, watched, when only running it can tell the inputs."""
    from kpredict.session.choose import Loaded, known_without_running
    from kpredict.session.load import execute, prepare
    from kpredict.session.observe import Observer

    path = Path(request.file).resolve()
    module = prepare(path)
    observer = Observer(str(path), {e.name for e in source.entries})
    if known_without_running(source, request):
        execute(module, source.text)
    else:
        with observer.watching():
            try:
                execute(module, source.text, as_main=True)
            except SystemExit as stop:
                if stop.code not in (None, 0):
                    raise
    return Loaded(source, module.__dict__, observer.calls, str(path))


def _entry(
    request: MeasureRequest, source: Source, chosen: Chosen
) -> Iterator[MeasuredEntry | Failure]:
    """Every mode in turn, with the same seed; one that fails leaves the others."""
    import torch

    from kpredict.verify.measure import measure

    modes = {}
    inputs: tuple[str, ...] = ()
    for mode in request.modes:
        if mode is Mode.AS_WRITTEN and "compile" not in source.text:
            continue
        try:
            torch.manual_seed(SEED)
            call, inputs = chosen.make()
            modes[mode] = measure(call, mode, seconds=request.seconds)
        except BaseException as error:
            yield _failed(request, chosen, mode, error)
        finally:
            call = None  # type: ignore[assignment]
            torch.cuda.empty_cache()
    if modes:
        yield MeasuredEntry(
            request.file, chosen.name, chosen.line, inputs, modes, digest(source.text)
        )


def _failed(request: Request, chosen: Chosen, mode: Mode, error: BaseException) -> Failure:
    import torch

    found = failure(request, error)
    if isinstance(error, torch.OutOfMemoryError):
        first = str(error).partition(".")[0]
        found = replace(found, message=f"{first}.", hint="Give it smaller inputs with --input.")
    return replace(
        found, message=f"{mode.value}: {found.message}", name=chosen.name, line=chosen.line
    )


def machine() -> Machine:
    """The GPU in use and the versions of what drives it."""
    import torch

    gpu = torch.cuda.get_device_properties()
    return Machine(
        gpu.name, (gpu.major, gpu.minor), gpu.multi_processor_count, _driver(),
        torch.version.cuda or "", torch.__version__, _version("triton"),
        platform.python_version(), __version__,
    )  # fmt: skip


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _driver() -> str:
    """The driver's version, by nvidia-smi; "" where that is not there."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        output = subprocess.run(command, capture_output=True, text=True, timeout=20).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return next(iter(output.split()), "")


if __name__ == "__main__":
    main(sys.argv[1])
