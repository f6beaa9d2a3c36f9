"""What predicting costs: seconds of rule and graph time for 1,000 to 100,000 ops; no torch.

usage: python benchmarks/rule_cost.py
"""

from __future__ import annotations

import time

from kpredict.eager.predict import predict_eager
from kpredict.eager.registry import rules
from kpredict.model import Op, Tensor
from kpredict.targets import target

KINDS = ("aten.add.Tensor", "aten.relu.default", "aten.sum.dim_IntList", "aten.mm.default")


def chain(n: int) -> list[Op]:
    """`n` ops, each reading what the one before it wrote: pointwise, reductions and products."""
    ops: list[Op] = []
    last = Tensor((1024, 1024), (1024, 1), "float32", "cuda", 0)
    for i in range(n):
        name = KINDS[i % len(KINDS)]
        out = Tensor((1024, 1024), (1024, 1), "float32", "cuda", i + 1)
        args: dict[str, object] = {"self": last}
        if name == "aten.add.Tensor":
            args |= {"other": last, "alpha": 1}
        elif name == "aten.sum.dim_IntList":
            out = Tensor((1024,), (1,), "float32", "cuda", i + 1)
            args |= {"dim": (1,), "keepdim": False, "dtype": None}
        elif name == "aten.mm.default":
            args |= {"mat2": last}
        ops.append(Op(name, args, (out,), index=i))
        last = last if name == "aten.sum.dim_IntList" else out
    return ops


def main() -> None:
    start = time.perf_counter()
    print(f"{len(rules())} rules loaded in {time.perf_counter() - start:.2f} s")
    print(f"{'ops':>8} {'seconds':>8} {'us per op':>10} {'launches':>9}")
    for n in (1_000, 10_000, 100_000):
        ops = chain(n)
        start = time.perf_counter()
        plan = predict_eager(ops, target())
        took = time.perf_counter() - start
        print(f"{n:8} {took:8.2f} {took / n * 1e6:10.1f} {len(plan.launches):9}")


if __name__ == "__main__":
    main()
