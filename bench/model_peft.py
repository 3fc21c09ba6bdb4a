# SPDX-License-Identifier: Apache-2.0
"""The rival of bench/model.py: the same encoder and adapters in transformers and PEFT.

    model_peft.py peft STEPS THREADS BATCH TOKENS

Fused AdamW, resident tokens, no data loader: every setting that frugal has.
"""

import json
import sys
import time

import peft
import torch
from transformers import BertConfig, BertModel


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        sizes = dict(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)
        # frugal's program asks for the hidden states alone, too.
        self.encoder = BertModel(BertConfig(**sizes, attn_implementation="sdpa"), add_pooling_layer=False)
        self.head = torch.nn.Linear(384, 6)

    def forward(self, ids):
        return self.head(self.encoder(ids).last_hidden_state.mean(1))


def main() -> None:
    _, steps, threads, batch, tokens = sys.argv[1], *map(int, sys.argv[2:6])
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    config = peft.LoraConfig(r=8, lora_alpha=32, target_modules=["query", "value"], modules_to_save=["head"])
    net = peft.get_peft_model(Classifier(), config).train()
    ids = torch.randint(5, 30000, (steps, batch, tokens))
    labels = torch.randint(0, 6, (steps, batch))
    trained = [each for each in net.parameters() if each.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-3, fused=True)
    seconds = []
    for step in range(steps):
        begun = time.perf_counter()
        loss = torch.nn.functional.cross_entropy(net(ids[step]), labels[step])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seconds.append(time.perf_counter() - begun)
    print(json.dumps({"way": "peft", "seconds": seconds, "trained": sum(each.numel() for each in trained),
                      "all": sum(each.numel() for each in net.parameters())}))  # fmt: skip


if __name__ == "__main__":
    main()
