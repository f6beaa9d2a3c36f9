"""Budgets that only a run can settle: a branch that the source leaves open."""

import os

import torch


# kpredict: x=f32[64]
def gate(x):
    if os.environ.get("KPREDICT_TEST_NEVER_SET"):
        x = x * 2
    return torch.sigmoid(x) + 1


def unknown(x: torch.Tensor):
    return x.sum()
