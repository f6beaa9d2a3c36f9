"""Where fake tensors go another way than a GPU: in-place gradients, shapes, data, sparse parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import kpredict  # noqa: E402
from kpredict.model import Kind, KpredictError  # noqa: E402

V, INDEX = "vectorized_elementwise_kernel", "index_elementwise_kernel"


@pytest.fixture(scope="module", autouse=True)
def world() -> Iterator[None]:
    with kpredict.pretend_cuda(target="h100"):
        yield


def launched(fn: Callable[[], Any], **more: Any) -> list[str]:
    report = kpredict.predict(fn, modes=("eager",), **more)
    assert not [u for _, plan in report.eager for u in plan.unknowns]
    return [launch.name for _, plan in report.eager for launch in plan.launches]


def array(*shape: int, **more: Any) -> Any:
    return torch.empty(shape, device="cuda", **more)


def ints(*shape: int) -> Any:
    return array(*shape, dtype=torch.int64)


@pytest.mark.parametrize(
    ("call", "backward"),
    [
        (lambda x, i: x.gather(0, i), [V, "_scatter_gather_elementwise_kernel"]),
        (lambda x, i: x.index_select(0, i[:, 0]), [V, "indexFuncLargeIndex"]),
        (lambda x, i: x.take(i), [V, INDEX]),
        (lambda x, i: x.sort(0)[0], [V, "_scatter_gather_elementwise_kernel"]),
    ],
)
def test_gradients_are_filled_in_place(
    call: Callable[[Any, Any], Any], backward: list[str]
) -> None:
    x = array(1000, 64, requires_grad=True)
    y = call(x, ints(1000, 64))
    grad = torch.empty_like(y)
    found = launched(lambda: torch.autograd.grad(y, x, grad, retain_graph=True))
    assert [n for n in found if n not in CHECKED] == backward


CHECKED = ("reduce_kernel", "_assert_async_cuda_kernel")


def test_one_hot_scatters() -> None:
    i = ints(1000)
    found = launched(lambda: torch.nn.functional.one_hot(i, 64))
    assert found[-1] == "_scatter_gather_elementwise_kernel"


def test_stated_values_decide_sizes() -> None:
    x = array(1000)
    sizes = []
    kpredict.predict(lambda: sizes.append(x[x > 0].numel()), modes=("eager",), assume={"*": 10})
    kpredict.predict(lambda: sizes.append(torch.unique(x > 0).numel()), modes=("eager",))
    kpredict.predict(lambda: sizes.append(torch.nonzero(x).shape[0]), modes=("eager",))
    assert sizes[0] == 10
    assert sizes[-1] == 500
    assert 2 in sizes  # bools have two values


def test_a_look_along_a_dim_finds_at_most_its_slices() -> None:
    x = array(40, 500)
    rows: list[Any] = []
    kpredict.predict(lambda: rows.append(torch.unique(x, dim=0).shape), modes=("eager",))
    assert rows[-1] == (20, 500)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 0, 0, 255),
        lambda x: torch.fake_quantize_per_channel_affine(x, x[0].detach(), x[0].detach(), 1, 0, 9),
        lambda x: torch.nn.functional.multi_margin_loss(x, ints(8)),
        lambda x: torch.distributions.Gamma(x, x, validate_args=False).rsample(),
        lambda x: torch.nn.functional.grid_sample(
            x.view(1, 1, 8, 4), array(1, 5, 5, 2), align_corners=True
        ),
        lambda x: torch.nn.functional.fractional_max_pool3d(
            x.view(1, 1, 2, 4, 4), (1, 2, 2), output_size=1
        ),
    ],
)
def test_gradients_of_ops_without_shape_functions(call: Callable[[Any], Any]) -> None:
    x = array(8, 4, requires_grad=True)
    assert launched(lambda: call(x).sum().backward())
    assert x.grad.shape == x.shape


def test_a_sparse_gradient_is_kept_and_stepped_with() -> None:
    table = torch.nn.Embedding(50, 8, sparse=True, device="cuda")
    step = torch.optim.SGD(table.parameters(), lr=0.1)
    picks, weight = ints(1200), array(8, 8)

    def run() -> None:
        step.zero_grad()
        (table(picks) @ weight).relu().sum().backward()
        step.step()

    found = launched(run)
    assert "Memcpy DtoD" not in found
    assert found[-1] == "indexFuncLargeIndex"


def test_sparse_results_know_how_many_elements_they_hold() -> None:
    x = array(30, 40)
    report = kpredict.predict(lambda: x.to_sparse().to_dense(), modes=("eager",))
    launches = [launch for _, plan in report.eager for launch in plan.launches]
    assert launches[-1].name == "sparseElementwiseKernelScalar"
    assert launches[-1].reads[1].bytes == 2 * 600 * 8  # half of the elements are supposed not 0
    assert any(launch.kind is Kind.SYNC for launch in launches)


def test_a_jagged_tensor_does_to_its_values_what_is_done_to_it() -> None:
    rows = [torch.randn(3, 8), torch.randn(5, 8)]
    x = torch.nested.nested_tensor(rows, device="cuda", layout=torch.jagged)
    report = kpredict.predict(lambda: (x * 2).to_padded_tensor(0.0), modes=("eager",))
    launches = [launch for _, plan in report.eager for launch in plan.launches]
    assert [launch.name for launch in launches] == [
        V, "jagged_dense_elementwise_dense_output_kernel_",
    ]  # fmt: skip
    assert launches[0].writes[0].bytes == 8 * 8 * 4
    assert launches[1].writes[0].bytes == 2 * 5 * 8 * 4


def test_packed_sequences_know_their_lengths() -> None:
    x = array(3, 10, 8)

    def pack() -> Any:
        lengths = torch.tensor([10, 7, 3])
        return torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)

    found = launched(pack)
    assert found == ["elementwise_kernel", "elementwise_kernel", "CatArrayBatchedCopy_vectorized"]


@pytest.mark.parametrize(
    ("dtype", "kernel"),
    [
        (torch.float16, "flash_fwd_kernel"),
        (torch.float32, "fmha_cutlassF_f32_aligned_64x64_rf_sm80"),
    ],
)
def test_jagged_attention_is_one_fused_kernel(dtype: Any, kernel: str) -> None:
    rows = [torch.randn(3, 4, 16), torch.randn(5, 4, 16)]
    x = torch.nested.nested_tensor(rows, device="cuda", layout=torch.jagged, dtype=dtype)
    heads = x.transpose(1, 2)
    attention = torch.nn.functional.scaled_dot_product_attention
    assert launched(lambda: attention(heads, heads, heads))[-1] == kernel


def test_a_strided_nested_tensor_is_refused() -> None:
    with pytest.raises(KpredictError, match="jagged"):
        torch.nested.nested_tensor([torch.randn(3, 8)], device="cuda")
