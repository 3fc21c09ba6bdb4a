# SPDX-License-Identifier: Apache-2.0
"""Writes lora.json: outputs and 50 steps of LoRA, rank-stabilized LoRA, DoRA and PiSSA, from PEFT."""

import copy

import peft
import torch
from torch.nn.functional import cross_entropy

from reference import deterministic, table, values, write

ROWS, F, H, C, IDS = 40, 6, 8, 3, 10
BATCH, STEPS, LR = 8, 50, 0.02

DATA = table([ROWS, F], 70, 0)
IMAGES = table([ROWS, 2, 5, 5], 70, 1)
TOKENS = ((table([ROWS, 4], 70, 2) + 1) * (IDS / 2)).long().clamp(0, IDS - 1)
TARGET = (DATA @ table([F, C], 70, 3)).argmax(dim=1)

START = {
    "embed.weight": table([IDS, F], 71, 0),
    "q_proj.weight": table([H, F], 71, 1),
    "q_proj.bias": table([H], 71, 2),
    "conv.weight": table([H, 2, 3, 3], 71, 3),
    "conv.bias": table([H], 71, 4),
    "v_proj.weight": table([C, H], 71, 5),
    "v_proj.bias": table([C], 71, 6),
}
LAYERS = ["q_proj", "v_proj", "conv"]
CASES = [
    {"name": "lora", "on": [*LAYERS, "embed"], "rank": 2, "alpha": 4},
    {"name": "rank-stabilized", "on": [*LAYERS, "embed"], "rank": 4, "alpha": 3, "use_rslora": True},
    {"name": "dora", "on": LAYERS, "rank": 2, "alpha": 4, "use_dora": True},
    {"name": "dora-embedding", "on": ["q_proj", "embed"], "rank": 2, "alpha": 4, "use_dora": True},
    {"name": "pissa", "on": ["q_proj", "v_proj"], "rank": 2, "alpha": 2, "init_lora_weights": "pissa"},
]


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(IDS, F)
        self.q_proj = torch.nn.Linear(F, H)
        self.conv = torch.nn.Conv2d(2, H, 3, padding=1)
        self.v_proj = torch.nn.Linear(H, C)

    def forward(self, rows):
        dtype = next(self.parameters()).dtype
        data, images = DATA[rows].to(dtype), IMAGES[rows].to(dtype)
        hidden = self.q_proj(data + self.embed(TOKENS[rows]).mean(1)) + self.conv(images).mean((2, 3))
        return self.v_proj(hidden.tanh())


def adapters(model) -> dict:
    """The trained tensors by layer and part: A, B, magnitude."""
    found = {}
    for name, tensor in model.named_parameters():
        parts = name.removeprefix("base_model.model.").split(".")
        for ours, theirs in (("A", "lora_A"), ("A", "lora_embedding_A"), ("B", "lora_B"),
                             ("B", "lora_embedding_B"), ("magnitude", "lora_magnitude_vector")):
            if theirs in parts:
                found[parts[0] + "." + ours] = tensor
    return found


def run(case: dict, dtype: torch.dtype) -> dict:
    net = Net()
    net.load_state_dict(START)
    options = {k: v for k, v in case.items() if k.startswith(("use_", "init_"))}
    config = peft.LoraConfig(r=case["rank"], lora_alpha=case["alpha"], target_modules=case["on"], **options)
    model = peft.get_peft_model(net, config)
    model = model.to(dtype)
    own = adapters(model)
    pissa = case.get("init_lora_weights") == "pissa"
    with torch.no_grad():
        for i, (name, tensor) in enumerate(own.items()):
            # B begins at zero in practice; here the first outputs already depend on it.
            if not pissa and not name.endswith("magnitude"):
                tensor.copy_(table(list(tensor.shape), 72, i) * 0.5)
    every = torch.arange(ROWS)
    result = {
        "start": {name: values(tensor) for name, tensor in own.items()},
        "shapes": {name: list(tensor.shape) for name, tensor in own.items()},
        "first_outputs": values(model(every)),
    }
    optim = torch.optim.AdamW(own.values(), lr=LR, weight_decay=0.01, foreach=False, fused=False)
    for step in range(STEPS):
        rows = every[(step * BATCH) % ROWS:][:BATCH]
        optim.zero_grad()
        cross_entropy(model(rows), TARGET[rows]).backward()
        optim.step()
    result["trained"] = {name: values(tensor) for name, tensor in own.items()}
    result["outputs"] = values(model(every))
    merged = copy.deepcopy(model).merge_and_unload()
    result["merged_outputs"] = values(merged(every))
    return result


def main() -> None:
    deterministic()
    cases = []
    for case in CASES:
        cases.append({**case, "float32": run(case, torch.float32), "float64": run(case, torch.float64)})
    write(
        "lora.json",
        "make_lora.py",
        {
            "peft": peft.__version__,
            "steps": STEPS,
            "lr": LR,
            "batch": BATCH,
            "start": {name: {"shape": list(t.shape), "values": values(t)} for name, t in START.items()},
            "data": values(DATA),
            "images": values(IMAGES),
            "tokens": TOKENS.reshape(-1).tolist(),
            "target": TARGET.tolist(),
            "cases": cases,
        },
    )


if __name__ == "__main__":
    main()
