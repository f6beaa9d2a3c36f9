"""Ops that take the CUDA way although PyTorch was built without CUDA: what runs, on which target.

The kernels are those that PyTorch 2.13.0's own host code launched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402

import kpredict  # noqa: E402
from kpredict.targets import target  # noqa: E402

V, E = "vectorized_elementwise_kernel", "elementwise_kernel"
COPY = "Memcpy DtoD"
FLASH_BACKWARD = [
    "flash_bwd_dot_do_o_kernel", "flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel",
    "flash_bwd_convert_dq_kernel",
]  # fmt: skip
Attention = dict[str, Any]


def launched(fn: Callable[[], Any]) -> list[str]:
    report = kpredict.predict(fn, modes=("eager",))
    assert not [u for _, plan in report.eager for u in plan.unknowns]
    return [launch.name for _, plan in report.eager for launch in plan.launches]


def array(*shape: int, dtype: str = "float32", grad: bool = True) -> Any:
    made = torch.empty(shape, device="cuda", dtype=getattr(torch, dtype))
    return made.requires_grad_(grad)


def both_ways(call: Callable[[], Any], inputs: Sequence[Any]) -> tuple[list[str], list[str]]:
    """The launches of the call, and those of its gradients alone."""
    out = call()
    first = out if isinstance(out, torch.Tensor) else out[0]
    grad = torch.empty(first.shape, dtype=first.dtype, device="cuda")

    def backward() -> Any:
        return torch.autograd.grad(first, inputs, grad, retain_graph=True, allow_unused=True)

    return launched(call), launched(backward)


def attention(*shape: int, dtype: str, **more: Any) -> tuple[Callable[[], Any], list[Any]]:
    q, k, v = (array(*shape, dtype=dtype) for _ in range(3))
    return lambda: F.scaled_dot_product_attention(q, k, v, **more), [q, k, v]


class TestAttention:
    @pytest.mark.parametrize(
        ("gpu", "dtype", "more", "forward"),
        [
            ("h100", "bfloat16", {}, "cudnnBackendExecute"),
            ("h100", "bfloat16", {"dropout_p": 0.1}, "flash_fwd_kernel"),
            ("a100", "bfloat16", {"is_causal": True}, "flash_fwd_kernel"),
            ("a100", "float16", {"dropout_p": 0.1}, "flash_fwd_kernel"),
            ("h100", "float32", {}, "fmha_cutlassF_f32_aligned_64x64_rf_sm80"),
            ("t4", "float32", {}, "fmha_cutlassF_f32_aligned_64x64_rf_sm75"),
            ("t4", "float16", {}, "fmha_cutlassF_f16_aligned_64x64_rf_sm75"),
        ],
    )
    def test_default_choice(self, gpu: str, dtype: str, more: Attention, forward: str) -> None:
        with kpredict.pretend_cuda(target=gpu):
            call, _ = attention(2, 8, 128, 64, dtype=dtype, **more)
            assert launched(call) == [forward]

    def test_flash_backward(self) -> None:
        with kpredict.pretend_cuda(target="a100"):
            call, inputs = attention(2, 8, 128, 64, dtype="bfloat16")
            assert both_ways(call, inputs)[1] == [E, E, *FLASH_BACKWARD]

    @pytest.mark.parametrize(
        ("gpu", "kernel"),
        [
            ("h100", "fmha_cutlassB_f32_aligned_64x64_k64_sm80"),
            ("t4", "fmha_cutlassB_f32_aligned_64x64_k64_sm75"),
        ],
    )
    def test_efficient_backward(self, gpu: str, kernel: str) -> None:
        with kpredict.pretend_cuda(target=gpu):
            call, inputs = attention(2, 8, 128, 64, dtype="float32")
            assert both_ways(call, inputs)[1] == [E, V, "reduce_kernel", E, V, kernel]

    def test_fills_for_seed_and_offset_from_2_14(self) -> None:
        with kpredict.pretend_cuda(target=target("h100", torch="2.14.1")):
            call, _ = attention(2, 8, 128, 64, dtype="float32")
            assert launched(call) == [V, V, "fmha_cutlassF_f32_aligned_64x64_rf_sm80"]

    def test_cudnn_when_asked(self) -> None:
        with kpredict.pretend_cuda(target="h100"):
            call, inputs = attention(2, 8, 128, 64, dtype="bfloat16")
            with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                forward, backward = both_ways(call, inputs)
        assert forward == ["cudnnBackendExecute"]
        assert backward.count("cudnnBackendExecute") == 1

    def test_a_switch_turns_flash_off(self) -> None:
        with kpredict.pretend_cuda(target="a100"):
            call, _ = attention(2, 8, 128, 64, dtype="bfloat16")
            torch.backends.cuda.enable_flash_sdp(False)
            try:
                assert launched(call) == ["fmha_cutlassF_bf16_aligned_64x64_rf_sm80"]
            finally:
                torch.backends.cuda.enable_flash_sdp(True)

    def test_math_is_made_of_products(self) -> None:
        with kpredict.pretend_cuda(target="h100"):
            call, _ = attention(2, 8, 128, 64, dtype="float32")
            with sdpa_kernel(SDPBackend.MATH):
                found = launched(call)
        assert found.count("cublasSgemmStridedBatched") == 2
        assert "softmax_warp_forward" in found

    def test_inference_mode_is_routed_too(self) -> None:
        with kpredict.pretend_cuda(target="a100"), torch.inference_mode():
            call, _ = attention(2, 8, 128, 64, dtype="bfloat16")
            assert launched(call) == ["flash_fwd_kernel"]

    def test_flex_attention_without_a_compiler_is_heard_inside(self) -> None:
        from torch.nn.attention.flex_attention import flex_attention

        with kpredict.pretend_cuda(target="h100"):
            q, k, v = (array(2, 4, 128, 64, grad=False) for _ in range(3))
            found = launched(lambda: flex_attention(q, k, v))
        assert found.count("cublasSgemmStridedBatched") == 2

    def test_on_the_host_nothing_is_routed(self) -> None:
        with kpredict.pretend_cuda(target="a100"):
            q = torch.zeros(1, 2, 4, 8)
            assert F.scaled_dot_product_attention(q, q, q).device.type == "cpu"


RNN_BACKWARD = ["cudnnRNNBackwardData_v8", "cudnnRNNBackwardWeights_v8"]


class TestRecurrent:
    @pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
    def test_one_call_for_all_steps(self, kind: str) -> None:
        with kpredict.pretend_cuda(target="h100"):
            module = getattr(torch.nn, kind)(64, 128, batch_first=True).cuda()
            x = array(8, 50, 64)
            forward, backward = both_ways(lambda: module(x)[0], [x, *module.parameters()])
        states = 2 if kind == "LSTM" else 1
        assert forward == [V] * states + [E, "cudnnRNNForward"]
        assert [n for n in backward if n.startswith("cudnn")] == RNN_BACKWARD

    def test_moved_as_a_part_of_a_module(self) -> None:
        class Model(torch.nn.Module):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.rnn = torch.nn.LSTM(64, 128, batch_first=True)

        with kpredict.pretend_cuda(target="h100"):
            module = Model().cuda().rnn
            found = launched(lambda: module(array(8, 50, 64))[0])
        assert found == [V, V, E, "cudnnRNNForward"]

    def test_weights_laid_out_anew_after_a_cast(self) -> None:
        with kpredict.pretend_cuda(target="h100"):
            module = torch.nn.LSTM(64, 128, batch_first=True).cuda()
            module = module.bfloat16()
            found = launched(lambda: module(array(8, 50, 64, dtype="bfloat16"))[0])
        assert found.count(COPY) == 4  # each weight into cuDNN's buffer
        assert found[-1] == "cudnnRNNForward"

    def test_packed_sequences(self) -> None:
        with kpredict.pretend_cuda(target="h100"):
            module = torch.nn.GRU(16, 32, num_layers=2, bidirectional=True).cuda()
            lengths = torch.tensor([5, 4, 2])

            def run() -> Any:
                packed = torch.nn.utils.rnn.pack_padded_sequence(array(5, 3, 16), lengths)
                return module(packed)[0].data

            assert launched(run).count("cudnnRNNForward") == 1

    @pytest.mark.parametrize(
        ("kind", "forward", "backward"),
        [
            ("LSTMCell", "lstm_cell_forward", "lstm_cell_backward"),
            ("GRUCell", "gru_cell_forward", "gru_cell_backward"),
        ],
    )
    def test_cells_are_fused(self, kind: str, forward: str, backward: str) -> None:
        with kpredict.pretend_cuda(target="h100"):
            cell, x = getattr(torch.nn, kind)(64, 128).cuda(), array(8, 64)
            ahead, back = both_ways(lambda: cell(x), [x, *cell.parameters()])
        assert ahead == [V, "cublasSgemm_v2", "cublasSgemm_v2", forward]
        assert back[0] == backward

    def test_cudnn_is_there_to_be_asked(self) -> None:
        with kpredict.pretend_cuda(target="h100"):
            assert torch.backends.cudnn.is_available()
            assert torch.backends.cudnn.version() > 90000
            assert torch.backends.cudnn.is_acceptable(array(4, 4))


class TestNormalization:
    def test_batch_norm_is_cudnns_in_float(self) -> None:
        with kpredict.pretend_cuda(target="h100"):
            norm, x = torch.nn.BatchNorm2d(64).cuda(), array(8, 64, 56, 56)
            forward, backward = both_ways(lambda: norm(x), [x, *norm.parameters()])
        assert forward[-1] == "cudnnBatchNormalizationForwardTrainingEx"
        assert "cudnnBatchNormalizationBackwardEx" in backward

    def test_rms_norm_is_one_kernel(self) -> None:
        with kpredict.pretend_cuda(target="h100"):
            norm, x = torch.nn.RMSNorm(256).cuda(), array(64, 256)
            assert len(launched(lambda: norm(x))) == 1


class TestTransformer:
    def test_fast_path_of_the_encoder_layer(self) -> None:
        with kpredict.pretend_cuda(target="h100"), torch.no_grad():
            layer = torch.nn.TransformerEncoderLayer(256, 8, 512, batch_first=True).cuda().eval()
            found = launched(lambda: layer(array(4, 128, 256, grad=False)))
        assert found == [
            "cublasLtMatmul", "fmha_cutlassF_f32_aligned_64x64_rf_sm80", "cublasLtMatmul", V,
            "vectorized_layer_norm_kernel", "cublasLtMatmul", "cublasLtMatmul", V,
            "vectorized_layer_norm_kernel",
        ]  # fmt: skip

    def test_wanted_weights_are_averaged_over_heads(self) -> None:
        with kpredict.pretend_cuda(target="h100"), torch.no_grad():
            layer = torch.nn.MultiheadAttention(256, 8, batch_first=True).cuda().eval()
            x = array(16, 100, 256, grad=False)
            found = launched(lambda: layer(x, x, x, need_weights=True)[0])
            each = launched(lambda: layer(x, x, x, average_attn_weights=False)[0])
        assert found == [*each, "reduce_kernel", V]

    def test_training_takes_the_long_way(self) -> None:
        with kpredict.pretend_cuda(target="h100"):
            layer = torch.nn.TransformerEncoderLayer(256, 8, 512, batch_first=True).cuda()
            found = launched(lambda: layer(array(4, 128, 256)))
        assert "fused_dropout_kernel_vec" in found


class TestSolvers:
    def test_lstsq_has_known_sizes(self) -> None:
        with kpredict.pretend_cuda(target="h100"):
            a, b = array(512, 64, grad=False), array(512, 8, grad=False)
            found = torch.linalg.lstsq(a, b)
            assert found.solution.shape == (64, 8)
            assert found.residuals.shape == (8,)


def traced(fn: Callable[..., Any], *inputs: Any) -> list[str]:
    """Ops in AOTAutograd's forward and backward graphs."""
    ops: list[str] = []

    def keep(graph: Any, examples: Any) -> Any:
        from functorch.compile import make_boxed_func  # type: ignore[import-untyped]

        ops.extend(str(n.target) for n in graph.graph.nodes if n.op == "call_function")
        return make_boxed_func(graph.forward)

    from torch._dynamo.backends.common import aot_autograd

    torch._dynamo.reset()
    compiled = torch.compile(fn, backend=aot_autograd(fw_compiler=keep, bw_compiler=keep))
    out = compiled(*inputs)
    out.sum().backward()
    return ops


class TestGraphs:
    """Routed ops appear in traced graphs as a CUDA build traces them."""

    @pytest.mark.parametrize(
        ("gpu", "dtype", "name"),
        [
            ("a100", "bfloat16", "_scaled_dot_product_flash_attention"),
            ("h100", "float32", "_scaled_dot_product_efficient_attention"),
        ],
    )
    def test_attention(self, gpu: str, dtype: str, name: str) -> None:
        with kpredict.pretend_cuda(target=gpu):
            q, k, v = (array(2, 8, 128, 64, dtype=dtype) for _ in range(3))
            ops = traced(F.scaled_dot_product_attention, q, k, v)
        assert f"aten.{name}.default" in ops
        assert f"aten.{name}_backward.default" in ops

    def test_fused_cell(self) -> None:
        with kpredict.pretend_cuda(target="h100"):
            cell = torch.nn.GRUCell(64, 128).cuda()
            ops = traced(cell, array(8, 64))
        assert "aten._thnn_fused_gru_cell.default" in ops
