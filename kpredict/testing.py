"""Kernel counts as assertions: `assert_max_kernels(fn, *args, eager=9, compiled=2)`.

Works without a GPU and without the pytest plugin. Tensors among the arguments, and the parameters
of modules, stand for the same arrays on the GPU; they are not changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kpredict.model import Basis, Kind, Mode, Phases, Report

__all__ = ["assert_max_kernels", "kernel_list"]


def assert_max_kernels(
    fn: Callable[..., Any],
    *args: Any,
    eager: int | None = None,
    compiled: int | None = None,
    round_trips: int | None = None,
    target: str | None = None,
    kwargs: Mapping[str, Any] | None = None,
) -> Report:
    """Fail with the list of kernels when `fn(*args, **kwargs)` takes more than it may.

    A count that is an interval is held to its upper end; something unknown in a plan is a failure,
    since nobody can say that the limit holds. Returns the report.
    """
    __tracebackhide__ = True
    import kpredict

    if eager is None and compiled is None and round_trips is None:
        raise TypeError("assert_max_kernels needs eager=, compiled= or round_trips=")
    modes = [m for m, on in (("eager", eager is not None or round_trips is not None),
                             ("compiled", compiled is not None)) if on]  # fmt: skip
    report = kpredict.predict(fn, args, dict(kwargs or {}), modes=tuple(modes), target=target)
    faults = [
        *_faults(report, Mode.EAGER, "eager", eager),
        *_faults(report, Mode.COMPILED, "compiled", compiled),
    ]
    if round_trips is not None:
        trips = sum(len(p.round_trips) for _, p in report.eager)
        if trips > round_trips:
            faults.append(
                f"{trips} round trips, at most {round_trips} are allowed\n"
                f"{kernel_list(report.eager)}"
            )
    if faults:  # no `assert`: pytest rewrites those of a plugin's package and adds to the message
        raise AssertionError("\n\n".join(faults))
    return report


def _faults(report: Report, mode: Mode, name: str, most: int | None) -> list[str]:
    if most is None:
        return []
    phases = report.eager if mode is Mode.EAGER else report.compiled
    unknown = [u for _, p in phases for u in p.unknowns]
    if unknown:
        what = "; ".join(f"{u.op}: {u.reason}" for u in unknown)
        return [f"{name}: {phases.kernels} kernels and something unknown ({what})"]
    if phases.kernels.hi > most:
        kernels = f"{phases.kernels} kernel{'' if str(phases.kernels) == '1' else 's'}"
        return [f"{name}: {kernels}, at most {most} are allowed\n{kernel_list(phases)}"]
    return []


def kernel_list(phases: Phases) -> str:
    """Every launch of some plans: name, count, place and why it exists."""
    lines: list[str] = []
    for phase, plan in phases:
        for launch in plan.launches:
            if launch.kind not in (Kind.KERNEL, Kind.LIBRARY):
                continue
            where = f"{launch.lines[0].file}:{launch.lines[0].line}" if launch.lines else "?"
            why = launch.because or ", ".join(launch.ops)
            basis = "" if launch.basis is Basis.HOST_CODE else f" [{launch.basis}]"
            lines.append(
                f"  {phase.value:8} {launch.count!s:>4} {launch.name}  {where}  {why}{basis}"
            )
    return "\n".join(lines)
