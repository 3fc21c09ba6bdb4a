# SPDX-License-Identifier: Apache-2.0
"""Writes transformers.json: outputs of the models of examples/finetune, from transformers' BertModel and
LlamaForCausalLM with the same weights."""

import torch
from torch.nn.functional import normalize
from transformers import BertConfig, BertModel, LlamaConfig, LlamaForCausalLM

from reference import deterministic, table, values, write

B, T = 3, 7  # texts, and tokens of the longest
LENGTHS = [7, 4, 1]

ENCODER = {"vocabulary": 41, "width": 24, "layers": 2, "heads": 3, "intermediate": 40, "positions": 16, "types": 2}

LLAMAS = [
    {"name": "as many heads of keys as of queries", "heads": 4, "key_value_heads": 4, "head": 6, "tied": False},
    {"name": "grouped heads", "heads": 4, "key_value_heads": 2, "head": 6, "tied": False},
    {"name": "one head of keys, wider than width / heads", "heads": 4, "key_value_heads": 1, "head": 10, "tied": False},
    {"name": "tied embeddings", "heads": 4, "key_value_heads": 2, "head": 6, "tied": True},
]  # fmt: skip
LLAMA = {"vocabulary": 41, "width": 24, "layers": 2, "intermediate": 40, "eps": 1e-5, "theta": 500.0}


def ids(vocabulary: int) -> torch.Tensor:
    return ((table([B, T], 60, 0) + 1) / 2 * (vocabulary - 1)).long() + 1


def weights(model: torch.nn.Module, stream: int) -> dict[str, torch.Tensor]:
    """By name: element i of tensor number n is number(stream, n, i), times 0.5 for matrices; 1 + 0.25 of it
    for the weights of norms."""
    made = {}
    for n, (name, parameter) in enumerate(model.named_parameters()):
        made[name] = table(list(parameter.shape), stream, n) * 0.5
        if parameter.dim() == 1 and name.endswith("weight"):
            made[name] = table(list(parameter.shape), stream, n) * 0.25 + 1
    return made


def filled(model: torch.nn.Module, stream: int) -> torch.nn.Module:
    made = weights(model, stream)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(made[name])
    return model.to(torch.float64).eval()


def described(model: torch.nn.Module) -> list[dict]:
    return [{"name": name, "shape": list(p.shape)} for name, p in model.named_parameters()]


def encoder() -> dict:
    config = BertConfig(
        vocab_size=ENCODER["vocabulary"], hidden_size=ENCODER["width"], num_hidden_layers=ENCODER["layers"],
        num_attention_heads=ENCODER["heads"], intermediate_size=ENCODER["intermediate"],
        max_position_embeddings=ENCODER["positions"], type_vocab_size=ENCODER["types"], layer_norm_eps=1e-12,
    )  # fmt: skip
    model = filled(BertModel(config), 61)
    mask = torch.tensor([[1] * length + [0] * (T - length) for length in LENGTHS])
    with torch.no_grad():
        hidden = model(input_ids=ids(ENCODER["vocabulary"]) * mask, attention_mask=mask).last_hidden_state
    # Pooling and Normalize of sentence-transformers.
    wide = mask.unsqueeze(-1).expand(hidden.size()).to(hidden.dtype)
    mean = (hidden * wide).sum(1) / wide.sum(1).clamp(min=1e-9)
    return {
        "sizes": ENCODER,
        "parameters": described(model),
        "mask": mask.tolist(),
        "ids": (ids(ENCODER["vocabulary"]) * mask).tolist(),
        "embedding": values(normalize(mean, p=2, dim=1)),
    }


def llama(case: dict) -> dict:
    config = LlamaConfig(
        vocab_size=LLAMA["vocabulary"], hidden_size=LLAMA["width"], num_hidden_layers=LLAMA["layers"],
        intermediate_size=LLAMA["intermediate"], num_attention_heads=case["heads"],
        num_key_value_heads=case["key_value_heads"], head_dim=case["head"], rms_norm_eps=LLAMA["eps"],
        rope_parameters={"rope_type": "default", "rope_theta": LLAMA["theta"]},
        tie_word_embeddings=case["tied"], max_position_embeddings=32,
    )  # fmt: skip
    model = filled(LlamaForCausalLM(config), 62)
    with torch.no_grad():
        logits = model(input_ids=ids(LLAMA["vocabulary"])).logits
    return case | {"parameters": described(model), "logits": values(logits)}


def main() -> None:
    deterministic()
    write(
        "transformers.json",
        "make_transformers.py",
        {
            "weights": weights.__doc__,
            "encoder": encoder(),
            "sizes": LLAMA,
            "ids": ids(LLAMA["vocabulary"]).tolist(),
            "llamas": [llama(case) for case in LLAMAS],
        },
    )


if __name__ == "__main__":
    main()
