"""Four layers of the shape of Mistral 7B, in bfloat16."""

import torch
from transformers import MistralConfig, MistralModel


class Model(MistralModel):
    def __init__(self):
        super().__init__(MistralConfig(num_hidden_layers=4, use_cache=False))
        self.to(torch.bfloat16)


def get_inputs():
    return [torch.randint(0, 32000, (1, 1024), device="cuda")]
