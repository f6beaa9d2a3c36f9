"""The Target that stands for a real GPU: the profile to predict with, and how far it is off."""

from __future__ import annotations

from kpredict.model import KpredictError
from kpredict.targets import TARGETS
from kpredict.verify.bundle import Machine


def target_of(machine: Machine) -> tuple[str, str]:
    """(name of a target, a note where it is not the same GPU; "" where it is).

    The GPU's own profile, else the one of its compute capability with the nearest number of SMs,
    since rules ask for both. Raises KpredictError for a GPU older than every profile.
    """
    words = machine.gpu.lower().replace("-", " ").split()
    for name, target in TARGETS.items():
        spelled = name.removeprefix("rtx")
        if name in words or (spelled in words and spelled != name) or machine.gpu == target.gpu:
            return name, _note(machine, name)
    alike = [t for t in TARGETS.values() if t.capability == machine.capability]
    if not alike and machine.capability > (0, 0):
        alike = [t for t in TARGETS.values() if t.capability[0] == machine.capability[0]]
    if not alike:
        major, minor = machine.capability
        raise KpredictError(
            f"No target stands for {machine.gpu or 'this GPU'} (compute capability "
            f"{major}.{minor}).",
            "Name one with --target; kpredict targets lists them.",
        )
    nearest = min(alike, key=lambda t: (abs(t.sms - machine.sms), t.name))
    return nearest.name, _note(machine, nearest.name)


def _note(machine: Machine, name: str) -> str:
    target = TARGETS[name]
    if machine.sms in (0, target.sms) and machine.capability in ((0, 0), target.capability):
        return ""
    return (
        f"Predicted for {name} ({target.sms} SMs, {target.capability[0]}.{target.capability[1]}), "
        f"measured on {machine.gpu} ({machine.sms} SMs, "
        f"{machine.capability[0]}.{machine.capability[1]})."
    )
