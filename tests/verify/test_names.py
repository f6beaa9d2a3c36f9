"""Kernel names as profilers of many releases write them."""

import pytest

from kpredict.verify.names import aten, family, is_elementwise, is_library, without_number


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
         "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>)",
         "vectorized_elementwise_kernel"),
        ("void (anonymous namespace)::softmax_warp_forward<float, float, 9, true>(float*, int)",
         "softmax_warp_forward"),
        ("vectorized_elementwise_kernel<4, abs_kernel(at::TensorIteratorBase&)::"
         "{lambda()#1}::operator()() const::{lambda(float)#1}, std::array<char*, 2ul> >",
         "vectorized_elementwise_kernel"),
        ("void at_cuda_detail::cub::DeviceReduceSingleTileKernel<at_cuda_detail::cub::P600, "
         "(bool)1>(int*)", "DeviceReduceSingleTileKernel"),
        ("_ZN2at6native29vectorized_elementwise_kernelILi4EEEvi", "vectorized_elementwise_kernel"),
        ("ampere_sgemm_32x32_sliced1x4_tn", "ampere_sgemm_32x32_sliced1x4_tn"),
        ("std::enable_if<!(false), void>::type internal::gemvx::kernel<int>(float)", "kernel"),
        ("triton_poi_fused_add_relu_0", "triton_poi_fused_add_relu_0"),
        ("Memcpy DtoH (Device -> Pageable)", "Memcpy DtoH"),
        ("Memset (Device)", "Memset"),
        ("", ""),
        ("(", "("),
    ],
)  # fmt: skip
def test_family(name: str, expected: str) -> None:
    assert family(name) == expected


def test_inductors_running_number_does_not_count() -> None:
    assert without_number("triton_poi_fused_add_relu_10") == "triton_poi_fused_add_relu"
    assert without_number("im2col_2") == "im2col_2"


@pytest.mark.parametrize(
    ("name", "op", "library"),
    [
        ("ampere_sgemm_128x64_tn", "", True),
        ("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm>(Params)", "", True),
        ("void cudnn::ops::nchwToNhwcKernel<float, float>()", "", True),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "", True),
        ("nvjet_hsh_128x64_64x8_1x2_h_bz_NNT", "", True),
        ("void Kernel2(Params)", "aten::addmm", True),
        ("void Kernel2(Params)", "aten::add", False),
        ("void at::native::elementwise_kernel<128, 4>(int)", "aten::addmm", False),
        ("void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<cutlass::bfloat16_t>>()",
         "aten::_flash_attention_forward", False),
        ("fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention)", "", False),
        ("void fbgemm_gpu::permute_2D_lengths_kernel<int>()", "fbgemm::permute", False),
        ("void multi_tensor_apply_kernel<BinaryOpScalarFunctor<float>>()", "", False),
        ("triton_tem_fused_mm_0", "aten::mm", False),
    ],
)  # fmt: skip
def test_is_library(name: str, op: str, library: bool) -> None:
    assert is_library(name, op) is library


def test_elementwise_and_op_names() -> None:
    assert is_elementwise("void at::native::unrolled_elementwise_kernel<F>(int)")
    assert is_elementwise("erfinv_kernel_vectorized4_kernel")
    assert not is_elementwise("void at::native::reduce_kernel<512, 1>()")
    assert not is_elementwise("index_elementwise_kernel")
    assert (aten("aten::add_"), aten("MulBackward0")) == ("aten.add_", "MulBackward0")
