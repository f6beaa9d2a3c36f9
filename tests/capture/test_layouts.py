"""Results of routed ops have the strides of the real ones."""

from __future__ import annotations

import itertools

import pytest

torch = pytest.importorskip("torch")

SHAPE = (4, 3, 6, 5)
OPS = {
    "copysign": torch.copysign,
    "xlogy": torch.xlogy,
    "logical_xor": torch.logical_xor,
    "heaviside": torch.heaviside,
    "pow": lambda a, b: torch.pow(2.0, a),
}


def array(layout: str, device: str) -> torch.Tensor:
    if layout == "row-major":
        return torch.ones(SHAPE, device=device)
    if layout == "transposed":
        return torch.ones(4, 3, 5, 6, device=device).transpose(-1, -2)
    if layout == "reversed":
        return torch.ones(5, 6, 3, 4, device=device).permute(3, 2, 1, 0)
    return torch.ones(1, 3, 6, 5, device=device).expand(SHAPE)


LAYOUTS = ("row-major", "transposed", "reversed", "expanded")


@pytest.mark.parametrize("name", OPS)
def test_strides_are_those_of_real_arrays(name: str) -> None:
    import kpredict

    for pair in itertools.product(LAYOUTS, repeat=2):
        real = OPS[name](*(array(layout, "cpu") for layout in pair))
        with kpredict.pretend_cuda():
            pretended = OPS[name](*(array(layout, "cuda") for layout in pair))
        assert pretended.stride() == real.stride(), pair


def test_a_fused_backward_stays_one_op() -> None:
    import kpredict

    with kpredict.pretend_cuda():
        x = torch.ones(8, device="cuda", requires_grad=True)
        y = torch.nn.functional.silu(x)
        report = kpredict.predict(
            lambda: torch.autograd.grad(y, x, torch.ones_like(y), retain_graph=True),
            modes=("eager",),
        )
    (plans,) = report.entries[0].plans.values()
    ops = [op for _, plan in plans for launch in plan.launches for op in launch.ops]
    assert ops == ["aten.fill_.Scalar", "aten.silu_backward.default"]


PLANES = (2, 4, 1, 1)
ON_PLANES = {
    "neg": torch.neg,
    "exp": torch.exp,
    "product": lambda x: x * x,
    "scaled": lambda x: x * 2,
    "shifted": lambda x: x.unsqueeze(0) + 1,
    "mixed": lambda x: x + torch.ones(4, 1, 1, device=x.device),
    "squared": lambda x: x**2,
    "where": lambda x: torch.where(x > 0, x, x),
    "relu6": torch.nn.functional.relu6,
    "hardswish": torch.nn.functional.hardswish,
    "masked_fill": lambda x: x.masked_fill(x > 0, 0.0),
    "tril": torch.tril,
    "log_softmax": lambda x: x.log_softmax(1),
}


@pytest.mark.parametrize("name", ON_PLANES)
@pytest.mark.parametrize("stride", [(4, 1, 4, 4), (9, 1, 9, 9), (1, 2, 2, 2)])
def test_dims_of_size_one_are_strided_as_in_real_arrays(name: str, stride: tuple[int, ...]) -> None:
    import kpredict

    real = ON_PLANES[name](torch.ones(40).as_strided(PLANES, stride))
    with kpredict.pretend_cuda():
        pretended = ON_PLANES[name](torch.ones(40, device="cuda").as_strided(PLANES, stride))
    assert pretended.stride() == real.stride()


def test_bilinear_interpolation_stays_channels_last() -> None:
    import kpredict

    with kpredict.pretend_cuda():
        x = torch.ones(2, 4, 3, 5, device="cuda").to(memory_format=torch.channels_last)
        y = torch.nn.functional.interpolate(x, scale_factor=2.0, mode="bilinear")
    assert y.stride() == (240, 1, 40, 4)


VIEWED = {
    "flat": lambda x: x.flatten(1),
    "in front": lambda x: x.reshape(1, *x.shape),
    "behind": lambda x: x.reshape(*x.shape, 1),
    "divided": lambda x: x.unflatten(1, (2, 3)),
    "empty_like": torch.empty_like,
    "zeros_like": torch.zeros_like,
    "flip": lambda x: x.flip(1),
    "sort": lambda x: x.sort(1)[0],
}
WITH_UNIT_DIMS = (
    ((1, 6, 1), (1, 3, 3)),
    ((1, 6, 4), (99, 1, 6)),
    ((4, 6, 1), (6, 1, 24)),
    ((1, 6, 1), (1, 1, 1)),
    ((2, 6, 1), (6, 1, 6)),
)


@pytest.mark.parametrize("name", VIEWED)
@pytest.mark.parametrize(("shape", "stride"), WITH_UNIT_DIMS)
def test_views_and_likes_stride_dims_of_size_one_as_real_arrays_do(
    name: str, shape: tuple[int, ...], stride: tuple[int, ...]
) -> None:
    import kpredict

    real = VIEWED[name](torch.ones(400).as_strided(shape, stride))
    with kpredict.pretend_cuda():
        pretended = VIEWED[name](torch.ones(400, device="cuda").as_strided(shape, stride))
    assert pretended.stride() == real.stride()
