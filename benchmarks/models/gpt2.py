"""GPT-2 (124M), inference over 1,024 tokens."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel


class Model(GPT2LMHeadModel):
    def __init__(self):
        super().__init__(GPT2Config(use_cache=False))


def get_inputs():
    return [torch.randint(0, 50257, (4, 1024), device="cuda")]
