"""Every rewrite keeps the meaning: the original and the changed code give the same on real arrays.

A case that says None holds code that looks alike and computes something else, or whose operands
cannot be said at the place of the change: it must be left alone.
"""

from __future__ import annotations

import ast
from typing import Any

import pytest

from kpredict.changes.by_hand import find
from kpredict.changes.change import Change, apply
from kpredict.changes.walking import read

torch = pytest.importorskip("torch")

HEAD = """\
import math
import torch
import torch.nn as nn
import torch.nn.functional as F

"""

SOFTMAX = {
    "shifted": ("e = torch.exp(x - x.amax(-1, keepdim=True))\n"
                "return e / e.sum(-1, keepdim=True)", "F.softmax(x, dim=-1)"),
    "plain": ("return torch.exp(x) / torch.exp(x).sum(dim=1, keepdim=True)",
              "F.softmax(x, dim=1)"),
    "max values": ("m = x.max(dim=-1, keepdim=True).values\ne = (x - m).exp()\n"
                   "return e / e.sum(dim=-1, keepdim=True)", "F.softmax(x, dim=-1)"),
    "max pair": ("m, _ = torch.max(x, -1, True)\ne = torch.exp(x - m)\n"
                 "return e.div(e.sum(-1, True))", "F.softmax(x, dim=-1)"),
    "max item": ("m = x.max(0, keepdim=True)[0]\ne = torch.exp(x - m)\n"
                 "return e / torch.sum(e, 0, keepdim=True)", "F.softmax(x, dim=0)"),
    "whole max": ("e = torch.exp(x - x.max())\nreturn e / e.sum(0, keepdim=True)",
                  "F.softmax(x, dim=0)"),
    "unsqueeze": ("e = torch.exp(x)\nreturn e / e.sum(-1).unsqueeze(-1)", "F.softmax(x, dim=-1)"),
    "index none": ("e = torch.exp(x)\nreturn e / e.sum(1)[:, None]", "F.softmax(x, dim=1)"),
    "in place": ("e = torch.exp(x)\ne /= e.sum(-1, keepdim=True)\nreturn e + 1",
                 "F.softmax(x, dim=-1)"),
    "of an expression": ("e = torch.exp(x * 2 + 1)\nreturn e / e.sum(-1, keepdim=True)",
                         "F.softmax(x * 2 + 1, dim=-1)"),
    "rebound": ("x = torch.exp(x)\nx = x / x.sum(-1, keepdim=True)\nreturn x",
                "F.softmax(x, dim=-1)"),
    "log of softmax": ("return torch.log(torch.softmax(x, -1)) * 2", "F.log_softmax(x, dim=-1)"),
    "log by hand": ("e = torch.exp(x)\nreturn torch.log(e / e.sum(-1, keepdim=True))",
                    "F.log_softmax(x, dim=-1)"),
    "logsumexp": ("return x - torch.logsumexp(x, -1, keepdim=True)", "F.log_softmax(x, dim=-1)"),
    "shifted log": ("s = x - x.amax(1, keepdim=True)\n"
                    "return s - torch.log(torch.exp(s).sum(1, keepdim=True))",
                    "F.log_softmax(x, dim=1)"),
    "shift of another dim": ("e = torch.exp(x - x.amax(-1, keepdim=True))\n"
                             "return e / e.sum(0, keepdim=True)",
                             "F.softmax(x - x.amax(-1, keepdim=True), dim=0)"),
    "no keepdim": ("e = torch.exp(x)\nreturn e / e.sum(0)", None),
    "epsilon": ("e = torch.exp(x)\nreturn e / (e.sum(-1, keepdim=True) + 1e-9)", None),
    "no exponential": ("return x / x.sum(-1, keepdim=True)", None),
    "other sum": ("e = torch.exp(x)\nreturn e / x.sum(-1, keepdim=True)", None),
    "changed between": ("e = torch.exp(x)\ns = e.sum(-1, keepdim=True)\ne = e + 1\nreturn e / s",
                        None),
    "changed in place": ("e = torch.exp(x)\ns = e.sum(-1, keepdim=True)\ne.add_(1)\nreturn e / s",
                         None),
    "changed through a view": ("e = torch.exp(x)\ns = e.sum(-1, keepdim=True)\nv = e.t()\n"
                               "v.add_(1)\nreturn e / s", None),
    "item set": ("e = torch.exp(x)\ns = e.sum(-1, keepdim=True)\ne[0] = 0\nreturn e / s", None),
}  # fmt: skip

NORMS = {
    "layer": ("m = x.mean(-1, keepdim=True)\nv = x.var(-1, keepdim=True, unbiased=False)\n"
              "return (x - m) / torch.sqrt(v + 1e-5)", "F.layer_norm(x, x.shape[-1:], eps=1e-5)"),
    "correction": ("m = x.mean(-1, keepdim=True)\n"
                   "v = torch.var(x, -1, correction=0, keepdim=True)\n"
                   "return (x - m) * torch.rsqrt(v + 1e-5)",
                   "F.layer_norm(x, x.shape[-1:], eps=1e-5)"),
    "affine": ("m = x.mean(dim=-1, keepdim=True)\nv = ((x - m) ** 2).mean(dim=-1, keepdim=True)\n"
               "n = (x - m) / (v + 1e-5).sqrt()\nreturn w * n + b",
               "F.layer_norm(x, x.shape[-1:], w, b, eps=1e-5)"),
    "affine the other way": ("c = x - x.mean(-1, keepdim=True)\n"
                             "v = c.pow(2).mean(-1, keepdim=True)\n"
                             "return b + c * (v + 1e-5) ** -0.5 * w",
                             "F.layer_norm(x, x.shape[-1:], w, b, eps=1e-5)"),
    "weight only": ("m = x.mean(-1, keepdim=True)\nv = (x - m).square().mean(-1, keepdim=True)\n"
                    "return (x - m) / torch.sqrt(1e-5 + v) * w",
                    "F.layer_norm(x, x.shape[-1:], w, eps=1e-5)"),
    "mean of squares": ("m = x.mean(-1, keepdim=True)\n"
                        "v = (x * x).mean(-1, keepdim=True) - m ** 2\n"
                        "return (x - m) / torch.sqrt(v + 1e-5)",
                        "F.layer_norm(x, x.shape[-1:], eps=1e-5)"),
    "two dims": ("m = x.mean((-2, -1), keepdim=True)\n"
                 "v = x.var((-2, -1), unbiased=False, keepdim=True)\n"
                 "return (x - m) / torch.sqrt(v + 1e-5)",
                 "F.layer_norm(x, x.shape[-2:], eps=1e-5)"),
    "rms": ("return w * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))",
            "F.rms_norm(x, x.shape[-1:], w, eps=1e-6)"),
    "rms divided": ("r = torch.sqrt((x ** 2).mean(-1, keepdim=True) + 1e-6)\nreturn x / r * w",
                    "F.rms_norm(x, x.shape[-1:], w, eps=1e-6)"),
    "rms unsqueezed": ("s = torch.mean(x * x, dim=-1).unsqueeze(-1)\n"
                       "return x * torch.rsqrt(s + 1e-6)", "F.rms_norm(x, x.shape[-1:], eps=1e-6)"),
    "rms with casts": ("h = x.float()\n"
                       "h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)\n"
                       "return w * h.to(x.dtype)", "F.rms_norm(x, x.shape[-1:], w, eps=1e-6)"),
    "rms with casts, dtype kept": (
        "dtype = x.dtype\nx = x.to(torch.float32)\nv = x.pow(2).mean(-1, keepdim=True)\n"
        "x = x * torch.rsqrt(v + 1e-6)\nreturn w * x.to(dtype)",
        "F.rms_norm(x, x.shape[-1:], w, eps=1e-6)"),
    "epsilon of a name": ("eps = 1e-3\nm = x.mean(-1, keepdim=True)\n"
                          "v = x.var(-1, keepdim=True, unbiased=False)\n"
                          "return (x - m) / torch.sqrt(v + eps)",
                          "F.layer_norm(x, x.shape[-1:], eps=eps)"),
    "unbiased": ("m = x.mean(-1, keepdim=True)\nv = x.var(-1, keepdim=True)\n"
                 "return (x - m) / torch.sqrt(v + 1e-5)", None),
    "unbiased, said": ("m = x.mean(-1, keepdim=True)\nv = x.var(-1, True, True)\n"
                       "return (x - m) / torch.sqrt(v + 1e-5)", None),
    "deviation": ("m = x.mean(-1, keepdim=True)\ns = x.std(-1, keepdim=True)\n"
                  "return (x - m) / (s + 1e-5)", None),
    "epsilon outside": ("m = x.mean(-1, keepdim=True)\n"
                        "v = x.var(-1, keepdim=True, unbiased=False)\n"
                        "return (x - m) / (torch.sqrt(v) + 1e-5)", None),
    "first dim": ("m = x.mean(0, keepdim=True)\nv = x.var(0, keepdim=True, unbiased=False)\n"
                  "return (x - m) / torch.sqrt(v + 1e-5)", None),
    "different dims": ("m = x.mean((-2, -1), keepdim=True)\n"
                       "v = x.var(-1, keepdim=True, unbiased=False)\n"
                       "return (x - m) / torch.sqrt(v + 1e-5)", None),
    "mean of another": ("m = w.mean(-1, keepdim=True)\n"
                        "v = x.var(-1, keepdim=True, unbiased=False)\n"
                        "return (x - m) / torch.sqrt(v + 1e-5)", None),
    "sum of squares": ("return x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) + 1e-6)", None),
    "cubes": ("return x * torch.rsqrt(x.pow(3).mean(-1, keepdim=True) + 1e-6)", None),
}  # fmt: skip

ACTIVATIONS = {
    "gelu": ("return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))", "F.gelu(x)"),
    "gelu by cdf": ("cdf = 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))\nreturn x * cdf",
                    "F.gelu(x)"),
    "gelu by number": ("return x * 0.5 * (torch.erf(x * 0.70710678) + 1.0)", "F.gelu(x)"),
    "gelu halved": ("return x * (1 + torch.erf(x / 2 ** 0.5)) / 2", "F.gelu(x)"),
    "tanh": ("return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))",
             'F.gelu(x, approximate="tanh")'),
    "tanh by pow": ("return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * "
                    "(x + 0.044715 * torch.pow(x, 3.0))))", 'F.gelu(x, approximate="tanh")'),
    "tanh factored": ("i = 0.7978845608 * x * (1 + 0.044715 * x * x)\n"
                      "return 0.5 * x * (1 + torch.tanh(i))", 'F.gelu(x, approximate="tanh")'),
    "gated": ("return w * x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))", "F.gelu(x) * w"),
    "silu": ("return x * torch.sigmoid(x)", "F.silu(x)"),
    "silu the other way": ("s = x.sigmoid()\nreturn s * x", "F.silu(x)"),
    "silu gated": ("return x * torch.sigmoid(x) * w", "F.silu(x)"),
    "silu behind": ("return w * x * torch.sigmoid(x)", "F.silu(x) * w"),
    "silu written out": ("return x / (1 + torch.exp(-x))", "F.silu(x)"),
    "quick gelu": ("return x * torch.sigmoid(1.702 * x)", None),
    "gate": ("return w * torch.sigmoid(x)", None),
    "another number": ("return 0.5 * x * (1 + torch.erf(x / 2))", None),
    "tanh of x": ("return 0.5 * x * (1 + torch.tanh(x))", None),
    "another cubic": ("return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * "
                      "(x + 0.04 * x ** 3)))", None),
    "erf of another": ("return 0.5 * w * (1 + torch.erf(x / math.sqrt(2)))", None),
    "rebound": ("s = torch.sigmoid(x)\nx = x + 1\nreturn x * s", None),
    "in a branch": ("s = torch.sigmoid(x)\nif w.numel() > 1:\n    s = s * 2\nreturn x * s", None),
    "in a loop": ("s = torch.sigmoid(x)\nfor _ in range(2):\n    x = x * s\nreturn x", None),
}  # fmt: skip

LOSSES = {
    "gather": ("return -torch.log_softmax(x, -1).gather(1, y[:, None]).mean()", None),
    "gather of 1": ("return -torch.log_softmax(x, 1).gather(1, y.unsqueeze(1)).mean()",
                    "F.cross_entropy(x, y)"),
    "gather of -1": ("p = F.log_softmax(x, dim=-1)\n"
                     "return -p.gather(-1, y.unsqueeze(-1)).squeeze(-1).sum()",
                     'F.cross_entropy(x.flatten(0, -2), y.flatten(), reduction="sum")'),
    "index": ("p = F.log_softmax(x, dim=1)\nreturn -p[torch.arange(len(y)), y].mean()",
              "F.cross_entropy(x, y)"),
    "index, each": ("p = F.log_softmax(x, dim=1)\nreturn -p[torch.arange(len(y)), y]",
                    'F.cross_entropy(x, y, reduction="none")'),
    "one hot": ("p = F.log_softmax(x, dim=-1)\n"
                "return -(F.one_hot(y, x.shape[1]).float() * p).sum(-1).mean()",
                "F.cross_entropy(x.flatten(0, -2), y.flatten())"),
    "all by hand": ("p = x - torch.logsumexp(x, 1, keepdim=True)\n"
                    "return torch.mean(-p[torch.arange(x.shape[0]), y])", "F.cross_entropy(x, y)"),
    "sign": ("return torch.log_softmax(x, 1).gather(1, y.unsqueeze(1)).mean()", None),
    "another dim": ("return -torch.log_softmax(x, 0).gather(1, y.unsqueeze(1)).mean()", None),
}  # fmt: skip

ATTENTION = {
    "scaled": ("s = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))\n"
               "return torch.softmax(s, -1) @ v", "F.scaled_dot_product_attention(q, k, v)"),
    "scale first": ("q = q * q.shape[-1] ** -0.5\ns = torch.matmul(q, k.mT)\n"
                    "return F.softmax(s, dim=-1).matmul(v)",
                    "F.scaled_dot_product_attention(q, k, v)"),
    "scale of a number": ("return torch.softmax(q @ k.transpose(-1, -2) * 0.25, -1) @ v",
                          "F.scaled_dot_product_attention(q, k, v, scale=0.25)"),
    "scale by a name": ("d = 7.0\nreturn torch.softmax(q @ k.transpose(-1, -2) / d, -1) @ v",
                        "F.scaled_dot_product_attention(q, k, v, scale=0.14285714285714285)"),
    "no scale": ("return torch.softmax(q @ k.transpose(-1, -2), -1) @ v",
                 "F.scaled_dot_product_attention(q, k, v, scale=1.0)"),
    "positive dims": ("s = q @ k.transpose(2, 3) * 0.5\nreturn s.softmax(-1) @ v",
                      "F.scaled_dot_product_attention(q, k.transpose(2, 3).transpose(-2, -1), v, "
                      "scale=0.5)"),
    "einsum": ('s = torch.einsum("bhid,bhjd->bhij", q, k) * 0.5\n'
               'return torch.einsum("bhij,bhjd->bhid", s.softmax(-1), v)',
               "F.scaled_dot_product_attention(q, k, v, scale=0.5)"),
    "softmax by hand": ("s = q @ k.transpose(-2, -1) * 0.5\n"
                        "e = torch.exp(s - s.amax(-1, keepdim=True))\n"
                        "return (e / e.sum(-1, keepdim=True)) @ v",
                        "F.scaled_dot_product_attention(q, k, v, scale=0.5)"),
    "added": ("s = q @ k.transpose(-2, -1) * 0.5 + bias\nreturn torch.softmax(s, -1) @ v",
              "F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=0.5)"),
    "added twice": ("s = q @ k.transpose(-2, -1) * 0.5 + bias + bias[0]\n"
                    "return torch.softmax(s, -1) @ v",
                    "F.scaled_dot_product_attention(q, k, v, attn_mask=bias[0] + bias, scale=0.5)"),
    "filled": ("s = q @ k.transpose(-2, -1) * 0.5\ns = s.masked_fill(mask == 0, float('-inf'))\n"
               "return torch.softmax(s, -1) @ v",
               "F.scaled_dot_product_attention(q, k, v, attn_mask=mask != 0, scale=0.5)"),
    "filled the other way": (
        "s = q @ k.transpose(-2, -1) * 0.5\ns = s.masked_fill(~mask.bool(), -math.inf)\n"
        "return torch.softmax(s, -1) @ v",
        "F.scaled_dot_product_attention(q, k, v, attn_mask=mask.bool(), scale=0.5)"),
    "where": ("s = q @ k.transpose(-2, -1) * 0.5\ns = torch.where(mask > 0, s, -torch.inf)\n"
              "return torch.softmax(s, -1) @ v",
              "F.scaled_dot_product_attention(q, k, v, attn_mask=mask > 0, scale=0.5)"),
    "causal": ("t = q.size(-2)\nm = torch.tril(torch.ones(t, t, dtype=torch.bool))\n"
               "s = (q @ k.transpose(-2, -1) * 0.5).masked_fill(~m, float('-inf'))\n"
               "return torch.softmax(s, -1) @ v",
               "F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.5)"),
    "causal by numbers": ("t = q.size(-2)\nm = torch.tril(torch.ones(t, t)).view(1, 1, t, t)\n"
                          "s = (q @ k.transpose(-2, -1) * 0.5).masked_fill(m == 0, -1e9)\n"
                          "return torch.softmax(s, -1) @ v",
                          "F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.5)"),
    "causal from above": ("t = q.size(-2)\nm = torch.triu(torch.ones(t, t), diagonal=1).bool()\n"
                          "s = (q @ k.transpose(-2, -1) * 0.5).masked_fill(m, float('-inf'))\n"
                          "return torch.softmax(s, -1) @ v",
                          "F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.5)"),
    "causal, added": ("t = q.size(-2)\n"
                      "m = torch.triu(torch.full((t, t), float('-inf')), diagonal=1)\n"
                      "s = q @ k.transpose(-2, -1) * 0.5 + m\nreturn torch.softmax(s, -1) @ v",
                      "F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.5)"),
    "no dropout": ("w = torch.softmax(q @ k.transpose(-2, -1) * 0.5, -1)\n"
                   "w = F.dropout(w, p=0.3, training=False)\nreturn w @ v",
                   "F.scaled_dot_product_attention(q, k, v, dropout_p=0.3 if False else 0.0, "
                   "scale=0.5)"),
    "softmax in float32": ("s = q @ k.transpose(-2, -1) * 0.5\n"
                           "w = F.softmax(s, dim=-1, dtype=torch.float64).to(q.dtype)\n"
                           "return w @ v", "F.scaled_dot_product_attention(q, k, v, scale=0.5)"),
    "large number": ("s = q @ k.transpose(-2, -1) * 0.5\ns = s.masked_fill(mask == 0, -1e9)\n"
                     "return torch.softmax(s, -1) @ v", None),
    "above the diagonal too": (
        "t = q.size(-2)\nm = torch.tril(torch.ones(t, t), diagonal=1)\n"
        "s = (q @ k.transpose(-2, -1) * 0.5).masked_fill(m == 0, -1e9)\n"
        "return torch.softmax(s, -1) @ v", None),
    "another dim": ("s = q @ k.transpose(-2, -1) * 0.5\nreturn torch.softmax(s, -2) @ v", None),
    "scaled mask": ("s = (q @ k.transpose(-2, -1) + bias) * 0.5\nreturn torch.softmax(s, -1) @ v",
                    None),
    "weights times something": ("w = torch.softmax(q @ k.transpose(-2, -1), -1) * bias\n"
                                "return w @ v", None),
}  # fmt: skip

PARAMETERS = {"x": "x, w, b", "loss": "x, y", "attention": "q, k, v, bias, mask"}


def function(body: str, parameters: str) -> str:
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    return f"{HEAD}def f({parameters}):\n{lines}"


def inputs(family: str) -> tuple[Any, ...]:
    torch.manual_seed(0)
    kind = torch.float64
    if family == "x":
        return torch.randn(6, 6, dtype=kind), torch.randn(6, dtype=kind), torch.randn(6, dtype=kind)
    if family == "loss":
        return torch.randn(6, 6, dtype=kind), torch.randint(0, 6, (6,))
    q, k, v = (torch.randn(2, 3, 5, 4, dtype=kind) for _ in range(3))
    mask = torch.ones(5, 5).tril(2)
    return q, k, v, torch.randn(2, 3, 5, 5, dtype=kind), mask


def run(text: str, family: str, grad: bool) -> list[Any]:
    """What the function returns, and the gradients of its inputs."""
    names: dict[str, Any] = {}
    exec(compile(text, "f.py", "exec"), names)
    given = [t.requires_grad_(grad and t.is_floating_point()) for t in inputs(family)]
    result = names["f"](*given)
    weights = torch.linspace(1, 2, result.numel(), dtype=result.dtype).view(result.shape)
    if grad:
        (result * weights).sum().backward()
    return [result.detach(), *(torch.zeros(()) if t.grad is None else t.grad for t in given)]


def changes(text: str) -> list[Change]:
    return [c for r in read(text, ast.parse(text)) for group in find(r) for c in group]


CASES = [
    (f"{name}: {case}", family, body, wanted)
    for name, family, cases in (
        ("softmax", "x", SOFTMAX), ("norm", "x", NORMS), ("activation", "x", ACTIVATIONS),
        ("loss", "loss", LOSSES), ("attention", "attention", ATTENTION),
    )
    for case, (body, wanted) in cases.items()
]  # fmt: skip


@pytest.mark.parametrize(
    ("family", "body", "wanted"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_rewrite(family: str, body: str, wanted: str | None) -> None:
    text = function(body, PARAMETERS[family])
    found = changes(text)
    if wanted is None:
        assert not found
        return
    assert found
    assert wanted in apply(text, found[:1])
    grad = " /= " not in body  # it overwrites what autograd needs
    before = run(text, family, grad)
    for change in found:  # every alternative, not only the best
        # float32 only where the code itself casts to it
        tolerance = 1e-5 if "float" in body else 1e-7
        torch.testing.assert_close(
            run(apply(text, [change]), family, grad), before, rtol=tolerance, atol=tolerance
        )
