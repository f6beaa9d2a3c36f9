"""FLOPs are those of torch's own formulas; float32 products are made as the file has set it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

from kpredict import predict  # noqa: E402
from kpredict.model import Launch, Mode  # noqa: E402


def ones(*shape: int, dtype: Any = None) -> Any:
    return torch.ones(shape, dtype=dtype or torch.float32, requires_grad=True)


def attention(q: Any, k: Any, v: Any) -> Any:
    return F.scaled_dot_product_attention(q, k, v)


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "mm": (torch.mm, (ones(48, 32), ones(32, 80))),
    "linear": (F.linear, (ones(4, 16, 32), ones(64, 32), ones(64))),
    "bmm": (torch.bmm, (ones(6, 24, 32), ones(6, 32, 40))),
    "baddbmm": (torch.baddbmm, (ones(6, 24, 40), ones(6, 24, 32), ones(6, 32, 40))),
    "einsum": (lambda a, b: torch.einsum("bij,bjk->bik", a, b), (ones(3, 8, 9), ones(3, 9, 7))),
    "conv2d": (F.conv2d, (ones(2, 8, 20, 20), ones(16, 8, 3, 3), ones(16))),
    "conv1d": (F.conv1d, (ones(2, 8, 50), ones(16, 8, 5))),
    "strided": (lambda x, w: F.conv2d(x, w, stride=2, padding=1),
                (ones(2, 8, 21, 21), ones(16, 8, 3, 3))),
    "transposed": (F.conv_transpose2d, (ones(2, 8, 10, 10), ones(8, 4, 3, 3))),
    "flash": (attention, tuple(ones(2, 4, 128, 64, dtype=torch.float16) for _ in range(3))),
    "efficient": (attention, tuple(ones(2, 4, 128, 64) for _ in range(3))),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_flops_are_torchs(name: str) -> None:
    fn, args = CASES[name]
    phases = ("forward", "backward")
    found = predict(fn, args, modes=("eager", "compiled"), phases=phases, target="a100")
    metas = [a.detach().to("meta").requires_grad_() for a in args]
    with FlopCounterMode(display=False) as counter:
        if fn is attention:  # on meta it would take the math way, which counts the same
            fn(*metas).sum().backward()
            again = 2 * metas[0].numel() * metas[1].shape[2]  # fused backwards redo one product
        else:
            fn(*metas).sum().backward()
            again = 0
    for mode in (Mode.EAGER, Mode.COMPILED):
        plans = found.entries[0].plans[mode]
        flops = sum(launch.flops for _, plan in plans for launch in plan.launches)
        assert flops == counter.get_total_flops() + again, mode


def test_groups_divide_all_three_products() -> None:
    """torch's formula for the gradient of the weights does not divide by the groups."""
    args = (ones(2, 8, 20, 20), ones(16, 2, 3, 3))
    found = predict(lambda x, w: F.conv2d(x, w, groups=4), args, phases=("forward", "backward"))
    flops = [launch.flops for _, plan in found.eager for launch in products(plan)]
    assert flops == [2 * (2 * 16 * 18 * 18) * (2 * 3 * 3)] * 3


def test_a_causal_mask_leaves_products_out() -> None:
    def causal(q: Any, k: Any, v: Any) -> Any:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    args = [torch.ones(1, 2, 100, 64, dtype=torch.float16) for _ in range(3)]
    (launch,) = products(predict(causal, args, modes=("eager",), target="a100").eager.forward)
    assert launch.flops == 2 * 2 * 64 * 2 * (100 * 101 // 2)


@pytest.fixture
def settings() -> Iterator[None]:
    """What a test sets is undone."""
    matmul, conv = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    yield
    torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = matmul, conv


def products(plan: Any) -> list[Launch]:
    return [launch for launch in plan.launches if launch.flops]


def both(x: Any, w: Any, kernel: Any) -> Any:
    return x @ w, F.conv2d(x[None, None], kernel)


def test_by_default_convolutions_take_tf32_and_matrix_products_do_not() -> None:
    args = (torch.ones(64, 64), torch.ones(64, 64), torch.ones(4, 1, 3, 3))
    found = predict(both, args)
    for mode in (Mode.EAGER, Mode.COMPILED):
        plan = found.entries[0].plans[mode].forward
        assert [x.precision for x in products(plan)] == ["ieee", "tf32"], mode


@pytest.mark.usefixtures("settings")
def test_precision_is_what_was_set_when_the_op_ran() -> None:
    def fn(x: Any, kernel: Any) -> Any:
        torch.backends.cuda.matmul.allow_tf32 = True
        x = x @ x
        torch.set_float32_matmul_precision("highest")
        x = x @ x
        torch.set_float32_matmul_precision("high")
        torch.backends.cudnn.allow_tf32 = False
        return F.conv2d((x @ x)[None, None], kernel)

    args = (torch.ones(64, 64), torch.ones(4, 1, 3, 3))
    plan = predict(fn, args, modes=("eager",)).eager.forward
    assert [x.precision for x in products(plan)] == ["tf32", "ieee", "tf32", "ieee"]


def test_attention_in_float32_makes_three_products_for_one() -> None:
    args = [torch.ones(1, 2, 64, 64) for _ in range(3)]
    for gpu, precision in (("a100", "3xtf32"), ("t4", "")):
        (launch,) = products(predict(attention, args, modes=("eager",), target=gpu).eager.forward)
        assert launch.precision == precision
