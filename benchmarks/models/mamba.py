"""Mamba (130M shape, four layers): the selective scan as a Python loop."""

import torch
from transformers import MambaConfig, MambaModel


class Model(MambaModel):
    def __init__(self):
        super().__init__(MambaConfig(num_hidden_layers=4, use_cache=False))


def get_inputs():
    return [torch.randint(0, 50280, (1, 64), device="cuda")]
