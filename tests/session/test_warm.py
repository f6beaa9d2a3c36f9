"""What is loaded for an analysis, seen in fresh interpreters."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

ANALYSE = """
import json, os, sys, tempfile
os.environ["KPREDICT_SCRATCH"] = tempfile.mkdtemp()
from kpredict.model import Entry, Mode
from kpredict.request import Request
from kpredict.session import child
found = list(child.analyse(Request("fixtures/add_relu.py", modes=(Mode.EAGER,)), lambda _: None))
print(json.dumps([any(isinstance(f, Entry) for f in found), "torch._inductor.ir" in sys.modules]))
"""

PREPARE = """
import json, os, torch
from kpredict.capture.world import pretend_cuda
from kpredict.model import Mode
from kpredict.plans import Call, make_plans
from kpredict.session.warm import load_stages
load_stages(compiled=True, patterns=True)
from torch._inductor.fx_passes import joint_graph, post_grad
def registered():
    return [m.lazy_init.cache_info().misses for m in (joint_graph, post_grad)]
before = registered()
with pretend_cuda() as world:
    x = torch.empty(64, 64, device="cuda")
    plans = make_plans(world, Call(torch.nn.functional.softmax, (x,), {"dim": 1}), [Mode.COMPILED])
print(json.dumps([before, registered(), len(plans.by_mode[Mode.COMPILED].forward.launches),
                  os.environ["TORCHINDUCTOR_COMPILE_THREADS"]]))
"""


def run(code: str) -> Any:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def test_an_eager_analysis_does_not_load_inductor() -> None:
    assert run(ANALYSE) == [True, False]


def test_patterns_registered_beforehand_are_those_a_graph_needs() -> None:
    """Else they would be registered twice, and a forked child would save nothing."""
    before, after, launches, threads = run(PREPARE)
    assert before == after == [1, 1]
    assert (launches, threads) == (1, "1")
