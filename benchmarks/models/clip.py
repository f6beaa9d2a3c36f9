"""CLIP: both towers and their similarity."""

import torch
from transformers import CLIPConfig, CLIPModel


class Model(CLIPModel):
    def __init__(self):
        super().__init__(CLIPConfig())


def get_inputs():
    return [
        torch.randint(0, 49408, (8, 77), device="cuda"),
        torch.randn(8, 3, 224, 224, device="cuda"),
    ]
