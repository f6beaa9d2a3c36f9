"""The encoder of Whisper tiny over 30 seconds of sound."""

import torch
from transformers import WhisperConfig
from transformers.models.whisper.modeling_whisper import WhisperEncoder


class Model(WhisperEncoder):
    def __init__(self):
        super().__init__(WhisperConfig())


def get_inputs():
    return [torch.randn(1, 80, 3000, device="cuda")]
