"""Which profile stands for a real GPU, and what a sweep asks."""

import pytest

from kpredict.model import KpredictError
from kpredict.request import Request
from kpredict.sweep import parse_sweep
from kpredict.verify.bundle import Machine
from kpredict.verify.machines import target_of
from kpredict.verify.sweep import sized


@pytest.mark.parametrize(
    ("gpu", "capability", "sms", "name", "noted"),
    [
        ("NVIDIA H200", (9, 0), 132, "h200", False),
        ("NVIDIA H100 80GB HBM3", (9, 0), 132, "h100", False),
        ("NVIDIA H100 PCIe", (9, 0), 114, "h100", True),
        ("NVIDIA A100-SXM4-40GB", (8, 0), 108, "a100", False),
        ("Tesla T4", (7, 5), 40, "t4", False),
        ("NVIDIA L4", (8, 9), 58, "l4", False),
        ("NVIDIA GeForce RTX 4090", (8, 9), 128, "rtx4090", False),
        ("NVIDIA RTX A6000", (8, 6), 84, "rtx3090", True),
        ("NVIDIA GeForce RTX 4060", (8, 9), 24, "l4", True),
        ("Tesla V100-DGXS-32GB", (7, 0), 80, "t4", True),
    ],
)
def test_target_of(gpu: str, capability: tuple[int, int], sms: int, name: str, noted: bool) -> None:
    found, note = target_of(Machine(gpu, capability, sms))
    assert (found, bool(note)) == (name, noted)


def test_no_target_stands_for_what_is_unknown() -> None:
    for machine in (Machine(), Machine("Tesla P100", (6, 0), 56)):
        with pytest.raises(KpredictError, match="No target stands for"):
            target_of(machine)


def test_sweep_sizes() -> None:
    assert parse_sweep("a=1e2,1e4,1000000") == ("a", (100, 10_000, 1_000_000))
    for wrong in ("a", "=1", "a=", "a=x", "a=0", "a=1e400", "a=-1"):
        with pytest.raises(KpredictError):
            parse_sweep(wrong)


def test_inputs_of_the_same_shape_follow() -> None:
    request = Request("f.py", inputs=("n=3",))
    inputs = ("a=f32[64,128]", "b=f32[64,128]", "w=f32[128]", "n=3")
    asked = sized(request, "f", inputs, "a", 12_800)
    assert asked.names == ("f",)
    assert asked.inputs == ("n=3", "a=f32[100,128]", "b=f32[100,128]")


def test_a_named_dimension_gets_the_size() -> None:
    asked = sized(Request("f.py", dims={"n": 4}), "f", (), "n", 256)
    assert asked.dims == {"n": 256}


def test_a_sweep_over_nothing() -> None:
    with pytest.raises(KpredictError, match="Sweep one of: a"):
        sized(Request("f.py"), "f", ("a=f32[8]", "n=3"), "z", 8)
