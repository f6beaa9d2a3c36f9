"""Events as a profiler writes them, for traces made by hand."""

from typing import Any


def span(name: str, ts: float, dur: float, tid: int = 1, cat: str = "cpu_op", **args: Any) -> Any:
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur,
            "args": args}  # fmt: skip


def launch(correlation: int, ts: float, tid: int = 1, name: str = "cudaLaunchKernel") -> Any:
    return span(name, ts, 2, tid, "cuda_runtime", correlation=correlation)


def kernel(correlation: int, ts: float, name: str = "k", dur: float = 5) -> Any:
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": ts, "dur": dur,
            "args": {"device": 0, "stream": 7, "correlation": correlation,
                     "grid": [8, 1, 1], "block": [128, 1, 1]}}  # fmt: skip


ADD = "void at::native::vectorized_elementwise_kernel<4, F>(int)"
