"""ResNet-50, inference over 32 images."""

import torch
from transformers import ResNetConfig, ResNetForImageClassification


class Model(ResNetForImageClassification):
    def __init__(self):
        super().__init__(ResNetConfig())


def get_inputs():
    return [torch.randn(32, 3, 224, 224, device="cuda")]
