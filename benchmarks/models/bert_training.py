"""BERT base, a training step of masked language modelling with AdamW."""

import torch
from transformers import BertConfig, BertForMaskedLM

MODE = "training"


class Model(BertForMaskedLM):
    def __init__(self):
        super().__init__(BertConfig())

    def forward(self, ids, labels):
        return super().forward(input_ids=ids, labels=labels).loss


def get_inputs():
    ids = torch.randint(0, 30522, (8, 128), device="cuda")
    return [ids, ids]


def make_optimizer(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-4)
