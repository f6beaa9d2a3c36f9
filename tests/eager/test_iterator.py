"""The iterator orders, coalesces, splits and allocates as TensorIterator does."""

from __future__ import annotations

import itertools

import pytest

from kpredict.eager.iterator import iterate, output_strides
from kpredict.model import Tensor

torch = pytest.importorskip("torch")

SHAPE = (4, 3, 6, 5)
LAYOUTS = {
    "row-major": lambda: torch.ones(SHAPE),
    "transposed": lambda: torch.ones(4, 3, 5, 6).transpose(-1, -2),
    "channels-last": lambda: torch.ones(SHAPE).contiguous(memory_format=torch.channels_last),
    "every second": lambda: torch.ones(4, 3, 6, 10)[..., ::2],
    "expanded": lambda: torch.ones(1, 3, 6, 5).expand(SHAPE),
    "reversed": lambda: torch.ones(5, 6, 3, 4).permute(3, 2, 1, 0),
    "row": lambda: torch.ones(5),
    "channel": lambda: torch.ones(3, 1, 1),
}


def metadata(t: object) -> Tensor:
    return Tensor(tuple(t.shape), tuple(t.stride()), "float32")  # type: ignore[attr-defined]


def array(*shape: int, dtype: str = "float32", stride: tuple[int, ...] = ()) -> Tensor:
    if not stride:
        step = [1]
        for n in reversed(shape[1:]):
            step.append(step[-1] * n)
        stride = tuple(reversed(step)) if shape else ()
    return Tensor(shape, stride, dtype)


@pytest.mark.parametrize("names", list(itertools.product(LAYOUTS, repeat=2)), ids="+".join)
def test_results_have_the_strides_torch_gives_them(names: tuple[str, str]) -> None:
    a, b = (LAYOUTS[name]() for name in names)
    result = torch.add(a, b)
    found = output_strides([metadata(a), metadata(b)])
    assert [s for s, n in zip(found, result.shape, strict=True) if n > 1] == [
        s for s, n in zip(result.stride(), result.shape, strict=True) if n > 1
    ]


def test_a_transposed_array_is_one_dim_with_itself_and_two_with_another_layout() -> None:
    straight, transposed = array(10, 100), array(10, 100, stride=(1, 10))
    assert iterate([transposed], [transposed]).shape == (1000,)
    assert iterate([straight], [transposed]).shape == (100, 10)


def test_dims_of_size_one_vanish() -> None:
    x = array(2, 1, 3, 1, stride=(3, 77, 1, 99))
    assert iterate([array(2, 1, 3, 1)], [x]).is_contiguous


def test_a_broadcast_operand_keeps_its_dims_apart() -> None:
    it = iterate([array(8, 4)], [array(8, 4), array(4)])
    assert it.shape == (4, 8)
    assert not it.is_contiguous


@pytest.mark.parametrize(
    ("x", "other", "pieces"),
    [  # seen in profiler traces of an A100
        (array(1024, 32, 256, 256, dtype="bfloat16"), array(32, 1, 1, dtype="bfloat16"), 2),
        (array(1749811200, dtype="bfloat16"), None, 2),
        (array(1000, dtype="float32"), None, 1),
    ],
)
def test_offsets_beyond_31_bits_split_the_iterator(
    x: Tensor, other: Tensor | None, pieces: int
) -> None:
    inputs = [x] if other is None else [x, other]
    found = iterate([x], inputs).pieces()
    assert len(found) == pieces
    assert sum(piece.numel for piece in found) == x.numel
    assert all(piece.is_32bit for piece in found)
