"""ViT base with patches of 16, inference over 32 images."""

import torch
from transformers import ViTConfig, ViTForImageClassification


class Model(ViTForImageClassification):
    def __init__(self):
        super().__init__(ViTConfig())


def get_inputs():
    return [torch.randn(32, 3, 224, 224, device="cuda")]
