"""All but `branch` runs on the CPU here, which only a run tells: the source does not say what
`make` is."""

import os

import torch

make = getattr(torch, os.environ.get("KPREDICT_TEST_NEVER_SET", "ones"))


def chain(x: torch.Tensor, y: torch.Tensor):
    return torch.sigmoid(x) * y + 1.0


def copies(x: torch.Tensor):
    return x.transpose(1, 2).contiguous()


def forward(x: torch.Tensor):
    if x.isnan().any():
        raise ValueError
    return x


def keep(x: torch.Tensor):
    return x[x > 0]


def branch(x: torch.Tensor, twice: bool = False):
    if twice:
        return torch.sigmoid(x) * x + 1.0
    return x + 1


if __name__ == "__main__":
    chain(make(4), make(4))
    copies(make(2, 1, 4))
    forward(make(4))
    keep(make(4))
    branch(make(4, device="cuda"))
