"""ConvNeXt tiny, inference over 16 images."""

import torch
from transformers import ConvNextConfig, ConvNextForImageClassification


class Model(ConvNextForImageClassification):
    def __init__(self):
        super().__init__(ConvNextConfig())


def get_inputs():
    return [torch.randn(16, 3, 224, 224, device="cuda")]
