"""Writes kpredict/source/infer/surface.json: PyTorch's Python surface as ATen schemas.

Run with the torch release whose surface is wanted: `python tools/generate_surface.py`. The file is
checked in, since the source front end must answer where no torch is installed.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import torch
from torch.overrides import get_overridable_functions

OUT = Path(__file__).parents[1] / "kpredict/source/infer/surface.json"
NOT_CALLED = re.compile(
    r"^(_test|_make_|_nested|_sparse|_mkldnn|mkldnn|_cudnn_rnn_b|miopen|_thnn_diff)|(?<!_to)(?<!index)_copy$|quantized_.*cell"
)


def overloads(packet: str) -> list[list[str]]:
    """`[overload, "(arguments) -> returns", flags]`, functional first; flags: p(ointwise),
    r(eduction), v(iew), c(omposite of others: never dispatched itself)."""
    rows = []
    for name in getattr(torch.ops.aten, packet).overloads():
        op = getattr(getattr(torch.ops.aten, packet), name)
        if "Tensor" not in str(op._schema):
            continue
        if (
            name.endswith("dimname")
            or "Dimname" in str(op._schema)
            or name.endswith(("_t", "hacked_twin"))
        ):
            continue
        flags = "p" if torch.Tag.pointwise in op.tags else ""
        flags += "r" if torch.Tag.reduction in op.tags else ""
        flags += "v" if op.is_view else ""
        qualified = op._schema.name + ("." + name if name != "default" else "")
        try:
            implicit = torch._C._dispatch_has_kernel_for_dispatch_key(
                qualified, "CompositeImplicitAutograd"
            ) and not torch._C._dispatch_has_kernel_for_dispatch_key(qualified, "CPU")
        except RuntimeError:  # a TorchScript-only overload
            continue
        flags += "c" if implicit else ""
        schema = str(op._schema).split("(", 1)[1]
        rows.append([name, "(" + schema, flags])
    return rows


def main() -> None:
    packets = sorted({n.split("::")[1].split(".")[0] for n in torch._C._dispatch_get_all_op_names()
                      if n.startswith("aten::")})  # fmt: skip
    ops = {}
    for packet in packets:
        if packet.startswith("__") or NOT_CALLED.search(packet):
            continue
        try:
            rows = overloads(packet)
        except AttributeError:
            continue
        if rows:
            ops[packet] = rows
    names = set()
    for namespace, functions in get_overridable_functions().items():
        where = {torch: "torch", torch.Tensor: "Tensor", torch.nn.functional: "F",
                 torch.linalg: "linalg", torch.fft: "fft", torch.special: "special",
                 }.get(namespace)  # fmt: skip
        if where:
            for f in functions:
                name = getattr(f, "__name__", "")
                if name and not name.startswith("__"):
                    names.add(f"{where}.{name}")
    dtypes = {n: str(v).removeprefix("torch.") for n, v in vars(torch).items()
              if isinstance(v, torch.dtype)}  # fmt: skip
    data = {
        "torch": torch.__version__.split("+")[0],
        "dtypes": dtypes,
        "names": sorted(names),
        "ops": ops,
    }
    text = (
        json.dumps(data, separators=(",", ":")).replace('],["', '],\n["').replace(']],"', ']],\n"')
    )
    OUT.write_text(text + "\n")
    print(f"{len(ops)} packets, {len(names)} Python names, {OUT.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
