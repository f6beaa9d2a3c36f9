"""What a prediction costs against the number of layers: a Llama of the shape of Llama 3.2 1B.

    pip install transformers
    python benchmarks/layers.py [LAYERS...] [--write FILE]

Inference over 2,048 tokens in bfloat16, hidden size 2048, 32 heads in 8 groups, MLP 8192,
vocabulary 128,256. Each row is two runs of the whole command's work in a child process, imports
included: the eager plan alone, and both plans. CPU seconds (user and system) of the child, wall
seconds, and its peak memory. `--write` puts the table into a file, between the lines
`<!-- layers -->` and `<!-- end -->`.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tables import put

from kpredict.model import Mode
from kpredict.request import Request
from kpredict.session.ask import ask

BEGIN = "<!-- layers -->"
LAYERS = (1, 2, 4, 8, 16, 32)
HEAD = (
    "| layers | eager kernels | CPU | memory | compiled kernels | CPU, both | wall | memory |",
    "|---|---|---|---|---|---|---|---|",
)
LLAMA = '''
"""A Llama with {layers} layers."""
import torch
from transformers import LlamaConfig, LlamaForCausalLM

class Model(LlamaForCausalLM):
    def __init__(self):
        config = LlamaConfig(
            vocab_size=128256, hidden_size=2048, intermediate_size=8192, num_hidden_layers={layers},
            num_attention_heads=32, num_key_value_heads=8, rope_theta=500000.0, use_cache=False,
            tie_word_embeddings=True, dtype="bfloat16",
        )
        super().__init__(config)
        self.to(torch.bfloat16)

def get_inputs():
    return [torch.randint(0, 128256, (1, 2048), device="cuda")]
'''


@dataclass(frozen=True, slots=True)
class Cost:
    """One run: what it counted in the mode asked for last, and what that took."""

    kernels: str
    cpu: float
    wall: float
    megabytes: float


def cost(path: Path, *modes: Mode) -> Cost:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    answer = ask(Request(str(path), modes=modes, timeout=600))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if answer.errors:
        raise RuntimeError(answer.errors[0].message)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    kernels = str(answer.entries[0].plans[modes[-1]].kernels)
    return Cost(kernels, cpu, answer.seconds, answer.peak_mb)


def row(layers: int, folder: Path) -> str:
    path = folder / f"llama_{layers}.py"
    path.write_text(LLAMA.format(layers=layers))
    eager = cost(path, Mode.EAGER)
    both = cost(path, Mode.EAGER, Mode.COMPILED)
    return (
        f"| {layers} | {eager.kernels} | {eager.cpu:.1f} s | {eager.megabytes:.0f} MB "
        f"| {both.kernels} | {both.cpu:.1f} s | {both.wall:.0f} s | {both.megabytes:.0f} MB |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("layers", nargs="*", type=int, help="default 1 2 4 8 16 32")
    parser.add_argument("--write", type=Path, help="put the table into this file")
    asked = parser.parse_args()
    table = [*HEAD]
    print("\n".join(table), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for layers in asked.layers or LAYERS:
            table.append(row(layers, Path(folder)))
            print(table[-1], flush=True)
    if asked.write:
        put(asked.write, BEGIN, table)


if __name__ == "__main__":
    main()
