# SPDX-License-Identifier: Apache-2.0
"""Writes models.json: what the models of torchvision and transformers, of which frugal::models has the names,
compute with the same weights."""

import math

import torch
from torch.nn.functional import normalize
from torchvision.models import resnet, vision_transformer
from transformers import (
    BertConfig, BertForSequenceClassification, BertModel, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM,
    TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper,
)  # fmt: skip

from reference import deterministic, table, values, write

B, T = 3, 7  # texts, and tokens of the longest
LENGTHS = [7, 4, 1]
VOCABULARY = 41

BERT = {"width": 24, "layers": 2, "heads": 3, "intermediate": 40, "positions": 16, "types": 2}
GPT2 = {"width": 24, "layers": 2, "heads": 3, "positions": 32}
LLAMA = {"width": 24, "layers": 2, "intermediate": 40, "eps": 1e-5, "theta": 500.0}
LLAMAS = [
    {"name": "as many heads of keys as of queries", "heads": 4, "key_value_heads": 4, "head": 6, "tied": False},
    {"name": "grouped heads", "heads": 4, "key_value_heads": 2, "head": 6, "tied": False},
    {"name": "one head of keys, wider than width / heads", "heads": 4, "key_value_heads": 1, "head": 10, "tied": False},
    {"name": "tied embeddings", "heads": 4, "key_value_heads": 2, "head": 6, "tied": True},
    {"name": "biases", "heads": 4, "key_value_heads": 2, "head": 6, "tied": False, "bias": True},
    {"name": "stretched rotations", "heads": 4, "key_value_heads": 2, "head": 12, "tied": False,
     "scaling": {"factor": 4.0, "low": 1.0, "high": 4.0, "positions": 64.0}},
]  # fmt: skip
WAYS = [
    {"temperature": 1.0, "top_k": 0, "top_p": 1.0},
    {"temperature": 0.7, "top_k": 3, "top_p": 1.0},
    {"temperature": 1.0, "top_k": 0, "top_p": 0.8},
    {"temperature": 1.5, "top_k": 6, "top_p": 0.5},
    {"temperature": 2.0, "top_k": 50, "top_p": 0.05},
]


def filled(model: torch.nn.Module, stream: int) -> torch.nn.Module:
    """Element i of tensor number n of the state dict is number(stream, n, i): times sqrt(3 / (elements / rows)) for
    matrices, times 0.25 and plus 1 for running_var and for vectors named weight, times 0.1 for other vectors."""
    with torch.no_grad():
        for n, (name, tensor) in enumerate(model.state_dict().items()):
            if not tensor.is_floating_point():
                continue
            made = table(list(tensor.shape), stream, n)
            if tensor.dim() > 1:
                tensor.copy_(made * math.sqrt(3 / (tensor.numel() / tensor.shape[0])))
            elif name.endswith(("running_var", "weight")):
                tensor.copy_(made * 0.25 + 1)
            else:
                tensor.copy_(made * 0.1)
    return model.to(torch.float64).eval()


def state(model: torch.nn.Module) -> list:
    return [[name, list(tensor.shape)] for name, tensor in model.state_dict().items()]


def gradients(model: torch.nn.Module, output: torch.Tensor) -> dict:
    """Of the mean of output * table(output's shape, 90, 0), for the parameter at place n: the sum of gradient *
    table(shape, 91, n)."""
    model.zero_grad()
    (output * table(list(output.shape), 90, 0)).mean().backward()
    places = {name: n for n, name in enumerate(model.state_dict())}
    return {name: float((p.grad * table(list(p.shape), 91, places[name])).sum()) for name, p in model.named_parameters()}


def tokens() -> torch.Tensor:
    return ((table([B, T], 60, 0) + 1) / 2 * (VOCABULARY - 1)).long() + 1


def floats(tensor: torch.Tensor) -> list:
    return values(tensor.to(torch.float32))


def resnets() -> list:
    cases = []
    for name, block in (("basic", resnet.BasicBlock), ("bottleneck", resnet.Bottleneck)):
        model = filled(resnet.ResNet(block, [1, 1, 1, 1], num_classes=5), 70)
        images = table([4, 3, 48, 48], 71, 0).double()
        case = {"name": name, "state": state(model), "evaluated": floats(model(images))}
        model.train()
        output = model(images)
        case |= {"trained": floats(output), "gradients": gradients(model, output),
                 "mean": floats(model.layer4[0].bn2.running_mean[:8]),
                 "variance": floats(model.layer4[0].bn2.running_var[:8])}  # fmt: skip
        cases.append(case)
    return cases


def vit() -> dict:
    sizes = {"image": 16, "patch": 8, "layers": 2, "heads": 2, "width": 16, "intermediate": 24, "classes": 5}
    model = filled(vision_transformer.VisionTransformer(16, 8, 2, 2, 16, 24, num_classes=5), 72)
    output = model.train()(table([3, 3, 16, 16], 73, 0).double())  # without dropout
    return {"sizes": sizes, "state": state(model), "logits": floats(output), "gradients": gradients(model, output)}


def bert_config(**more) -> BertConfig:
    return BertConfig(
        vocab_size=VOCABULARY, hidden_size=BERT["width"], num_hidden_layers=BERT["layers"],
        num_attention_heads=BERT["heads"], intermediate_size=BERT["intermediate"],
        max_position_embeddings=BERT["positions"], type_vocab_size=BERT["types"], layer_norm_eps=1e-12, **more,
    )  # fmt: skip


def bert() -> dict:
    model = filled(BertModel(bert_config()), 61)
    mask = torch.tensor([[1] * length + [0] * (T - length) for length in LENGTHS])
    types = torch.tensor([[0, 0, 1, 1, 1, 0, 0]] * B)
    ids = tokens() * mask
    made = model(input_ids=ids, attention_mask=mask, token_type_ids=types)
    hidden = made.last_hidden_state
    # Pooling and Normalize of sentence-transformers.
    wide = mask.unsqueeze(-1).expand(hidden.size()).to(hidden.dtype)
    mean = (hidden * wide).sum(1) / wide.sum(1).clamp(min=1e-9)
    case = {
        "sizes": BERT, "state": state(model), "mask": mask.tolist(), "types": types.tolist(), "ids": ids.tolist(),
        "hidden": floats(hidden * wide), "pooled": floats(made.pooler_output),
        "embedding": floats(normalize(mean, p=2, dim=1)), "gradients": gradients(model, made.pooler_output),
    }  # fmt: skip
    classifier = filled(BertForSequenceClassification(bert_config(num_labels=3)), 63)
    with torch.no_grad():
        logits = classifier(input_ids=ids, attention_mask=mask).logits
    return case | {"classifier": {"state": state(classifier), "logits": floats(logits)}}


def continued(model: torch.nn.Module) -> dict:
    """Greedy, all tokens; and the same until every text has had the stop token."""
    model = model.to(torch.float32)
    whole = dict(max_new_tokens=14, do_sample=False, use_cache=True, pad_token_id=0, eos_token_id=None)
    plain = model.generate(tokens()[:, :5], attention_mask=torch.ones(B, 5, dtype=torch.long), **whole)
    rows = [row[5:] for row in plain.tolist()]
    # A token that all texts have, as late as possible.
    in_all = sorted(set(rows[0]).intersection(*rows[1:]))
    stop = max(in_all, key=lambda token: max(row.index(token) for row in rows)) if in_all else rows[0][4]
    until = model.generate(tokens()[:, :5], attention_mask=torch.ones(B, 5, dtype=torch.long),
                           **(whole | {"eos_token_id": stop, "pad_token_id": stop}))  # fmt: skip
    return {"tokens": plain.tolist(), "stop": stop, "stopped": until.tolist()}


def gpt2() -> dict:
    config = GPT2Config(
        vocab_size=VOCABULARY, n_positions=GPT2["positions"], n_embd=GPT2["width"], n_layer=GPT2["layers"],
        n_head=GPT2["heads"], bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    model = filled(GPT2LMHeadModel(config), 100)
    logits = model(input_ids=tokens()).logits
    case = {"sizes": GPT2, "state": state(model), "logits": floats(logits), "gradients": gradients(model, logits)}
    return case | {"continued": continued(model)}


def llama(case: dict) -> dict:
    rope = {"rope_type": "default", "rope_theta": LLAMA["theta"]}
    if "scaling" in case:
        scaling = case["scaling"]
        rope |= {"rope_type": "llama3", "factor": scaling["factor"], "low_freq_factor": scaling["low"],
                 "high_freq_factor": scaling["high"],
                 "original_max_position_embeddings": int(scaling["positions"])}  # fmt: skip
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=LLAMA["width"], num_hidden_layers=LLAMA["layers"],
        intermediate_size=LLAMA["intermediate"], num_attention_heads=case["heads"],
        num_key_value_heads=case["key_value_heads"], head_dim=case["head"], rms_norm_eps=LLAMA["eps"],
        rope_parameters=rope, tie_word_embeddings=case["tied"], max_position_embeddings=256,
        attention_bias=case.get("bias", False), mlp_bias=case.get("bias", False), bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    model = filled(LlamaForCausalLM(config), 62)
    logits = model(input_ids=tokens()).logits
    made = case | {"state": state(model), "logits": floats(logits), "gradients": gradients(model, logits)}
    return made | {"continued": continued(model)}


def fingerprint(model: torch.nn.Module) -> str:
    """FNV-1a of 64 bits over lines like `fc.weight 1000,512`, sorted."""
    lines = sorted(f"{name} {','.join(map(str, tensor.shape))}\n" for name, tensor in model.state_dict().items())
    h = 0xCBF29CE484222325
    for byte in "".join(lines).encode():
        h = (h ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{h:016x}"


def real() -> list:
    smol = LlamaConfig(vocab_size=49152, hidden_size=576, intermediate_size=1536, num_hidden_layers=30,
                       num_attention_heads=9, num_key_value_heads=3, tie_word_embeddings=True)  # fmt: skip
    with torch.device("meta"):
        models = {
            "resnet18": resnet.resnet18(), "resnet34": resnet.resnet34(), "resnet50": resnet.resnet50(),
            "vit_b_16": vision_transformer.vit_b_16(), "bert": BertModel(BertConfig()),
            "gpt2": GPT2LMHeadModel(GPT2Config()), "SmolLM2-135M": LlamaForCausalLM(smol),
        }  # fmt: skip
    return [{"name": name, "tensors": len(model.state_dict()), "fingerprint": fingerprint(model)}
            for name, model in models.items()]  # fmt: skip


def filtered() -> list:
    logits = table([2, 12], 65, 0).double() * 3
    cases = []
    for way in WAYS:
        kept = TemperatureLogitsWarper(way["temperature"])(None, logits)
        if way["top_k"] > 0:
            kept = TopKLogitsWarper(way["top_k"])(None, kept)
        if way["top_p"] < 1:
            kept = TopPLogitsWarper(way["top_p"])(None, kept)
        cases.append(way | {"shares": floats(kept.softmax(1))})
    return cases


def main() -> None:
    deterministic()
    write(
        "models.json",
        "make_models.py",
        {
            "weights": filled.__doc__,
            "sums": gradients.__doc__,
            "names": fingerprint.__doc__,
            "tokens": tokens().tolist(),
            "real": real(),
            "resnets": resnets(),
            "vit": vit(),
            "bert": bert(),
            "gpt2": gpt2(),
            "sizes": LLAMA,
            "llamas": [llama(case) for case in LLAMAS],
            "filtered": filtered(),
        },
    )


if __name__ == "__main__":
    main()
