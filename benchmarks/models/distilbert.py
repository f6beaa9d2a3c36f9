"""DistilBERT for classification with a padding mask."""

import torch
from transformers import DistilBertConfig, DistilBertForSequenceClassification


class Model(DistilBertForSequenceClassification):
    def __init__(self):
        super().__init__(DistilBertConfig())


def get_inputs():
    ids = torch.randint(0, 30522, (16, 128), device="cuda")
    return [ids, torch.ones(16, 128, dtype=torch.int64, device="cuda")]
