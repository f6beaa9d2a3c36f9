"""Views, allocation and metadata: ops that launch nothing.

Read: torchgen/packaged/ATen/native/native_functions.yaml of torch 2.13.0 and
native/TensorShape.cpp, TensorFactories.cpp, Resize.cpp of release 2.6.0.
"""

from __future__ import annotations

from collections.abc import Iterable

from kpredict.eager.registry import rule
from kpredict.model import Launch, Op, Target


@rule(
    "aten.view", "aten._unsafe_view", "aten._reshape_alias", "aten.as_strided", "aten.expand",
    "aten.permute", "aten.select", "aten.slice", "aten.split", "aten.split_with_sizes",
    "aten.unsafe_split", "aten.unsafe_split_with_sizes", "aten.squeeze", "aten.unsqueeze",
    "aten.t", "aten.transpose", "aten.unbind", "aten.unfold", "aten.diagonal", "aten.alias",
    "aten.detach", "aten.view_as_real", "aten.view_as_complex", "aten._conj", "aten._neg_view",
    "aten.lift_fresh", "aten._fw_primal", "aten._make_dual", "aten.set_", "aten.set_data",
    "aten._values", "aten._indices",
    "aten.values", "aten.indices", "aten.crow_indices", "aten.col_indices", "aten.ccol_indices",
    "aten.row_indices", "aten.slice_inverse",
    source="native_functions.yaml, 2.13.0; native/TensorShape.cpp, 2.6.0",
)  # fmt: skip
def views(op: Op, target: Target) -> Iterable[Launch]:
    """Another look at the same memory: nothing is launched."""
    return []


@rule(
    "aten.empty", "aten.empty_like", "aten.empty_strided", "aten.empty_permuted",
    "aten.new_empty", "aten.new_empty_strided", "aten.resize_", "aten.resize_as_",
    "aten._efficientzerotensor",
    source="native/TensorFactories.cpp, native/cuda/Resize.cpp; 2.6.0",
)  # fmt: skip
def allocations(op: Op, target: Target) -> Iterable[Launch]:
    """Memory from the caching allocator, left as it is. A resize that grows a storage keeps what it
    held by one copy, which we do not see; steady-state code does not grow."""
    return []


@rule(
    "aten.is_same_size", "aten.is_set_to", "aten.is_pinned", "aten._has_same_storage_numel",
    "aten.sparse_dim", "aten.dense_dim", "aten.is_coalesced", "aten._assert_tensor_metadata",
    "aten._assert_scalar",
    "aten._functional_assert_scalar", "aten.sym_constrain_range",
    "aten.sym_constrain_range_for_size", "aten._print", "aten.record_stream",
    "aten.sym_size", "aten.sym_stride", "aten.sym_numel", "aten.sym_storage_offset",
    "aten._fused_sdp_choice",
    source="native_functions.yaml; 2.13.0",
)  # fmt: skip
def metadata(op: Op, target: Target) -> Iterable[Launch]:
    """Questions the host answers by itself."""
    return []
