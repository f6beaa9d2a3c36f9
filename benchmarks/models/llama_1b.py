"""A Llama of the shape of Llama 3.2 1B, in bfloat16, inference over 2,048 tokens."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM


class Model(LlamaForCausalLM):
    def __init__(self):
        config = LlamaConfig(
            vocab_size=128256, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16,
            num_attention_heads=32, num_key_value_heads=8, rope_theta=500000.0, use_cache=False,
            tie_word_embeddings=True, dtype="bfloat16",
        )  # fmt: skip
        super().__init__(config)
        self.to(torch.bfloat16)


def get_inputs():
    return [torch.randint(0, 128256, (1, 2048), device="cuda")]
