# SPDX-License-Identifier: Apache-2.0
"""Writes distill.json: distillation losses of PyTorch and their gradients, written as in the papers'
own code: soft targets (Hinton et al.), hidden states (FitNets), attention transfer (Zagoruyko and
Komodakis), distributions of self-attention (MiniLM)."""

import torch
from reference import deterministic, number, table, values, write
from torch.nn import functional as F

IGNORED = -100


def labels_of(shape, classes: int, seed: int) -> torch.Tensor:
    count = torch.Size(shape).numel()
    flat = [int((number(seed, i) + 1) / 2 * classes) for i in range(count)]
    return torch.tensor(flat).view(shape)


def rows(logits: torch.Tensor) -> torch.Tensor:
    """[B, C, ...] as [positions, C]."""
    return logits.movedim(1, -1).reshape(-1, logits.size(1))


def soft_targets(student, teacher, kept, temperature: float) -> torch.Tensor:
    """The usual term, over the positions that are kept."""
    loss = torch.nn.KLDivLoss(reduction="batchmean")
    log = F.log_softmax(rows(student)[kept] / temperature, dim=1)
    soft = F.softmax(rows(teacher)[kept] / temperature, dim=1)
    return loss(log, soft) * temperature**2


def top(student, teacher, kept, temperature: float, k: int) -> torch.Tensor:
    """The same over the teacher's k largest classes and one outcome for all others."""
    q = F.softmax(rows(student)[kept].double() / temperature, dim=1)
    p = F.softmax(rows(teacher)[kept].double() / temperature, dim=1)
    largest, classes = p.topk(k, dim=1)
    of_student = q.gather(1, classes)
    p = torch.cat([largest, 1 - largest.sum(1, keepdim=True)], 1)
    q = torch.cat([of_student, 1 - of_student.sum(1, keepdim=True)], 1)
    return (p * (p.log() - q.log())).sum(1).mean() * temperature**2


def logits_case(name, student, teachers, target, temperature, alpha, weights=None, k=0) -> dict:
    student = student.clone().requires_grad_()
    weights = weights or [1.0] * len(teachers)
    kept = target.reshape(-1) != IGNORED
    taught = sum(
        weight
        * (
            top(student, each, kept, temperature, k)
            if k
            else soft_targets(student, each, kept, temperature)
        )
        for each, weight in zip(teachers, weights)
    ) / sum(weights)
    task = torch.nn.CrossEntropyLoss(ignore_index=IGNORED)(student, target)
    value = alpha * taught + (1 - alpha) * task
    value.backward()
    return {
        "name": name,
        "temperature": temperature,
        "alpha": alpha,
        "top_k": k,
        "weights": weights,
        "shape": list(student.shape),
        "student": values(student),
        "teachers": [values(each) for each in teachers],
        "target_shape": list(target.shape),
        "target": target.reshape(-1).tolist(),
        "value": values(value.float())[0],
        "gradient": values(student.grad),
    }


def term_case(name: str, term: str, student, teacher, loss, **more) -> dict:
    """`loss(student)` of states of layers."""
    student = [each.clone().requires_grad_() for each in student]
    value = loss(*student)
    value.backward()
    return {
        "name": name,
        "term": term,
        "shapes": [list(each.shape) for each in student],
        "student": [values(each) for each in student],
        "teacher_shapes": [list(each.shape) for each in teacher],
        "teacher": [values(each) for each in teacher],
        "value": values(value)[0],
        "gradients": [values(each.grad) for each in student],
        "mask": more.get("mask", torch.ones(0)).reshape(-1).int().tolist(),
        "mask_shape": list(more.get("mask", torch.ones(0)).shape),
        "heads": more.get("heads", 1),
        "causal": more.get("causal", False),
        "projection": values(more["projection"]) if "projection" in more else [],
        "projection_shape": list(more["projection"].shape) if "projection" in more else [],
    }


def attention_transfer(student, teacher):
    def at(x):
        return F.normalize(x.pow(2).mean(1).view(x.size(0), -1))

    return (at(student) - at(teacher)).pow(2).mean()


def attention(query, key, heads: int, mask, causal: bool) -> torch.Tensor:
    """Probabilities [B, A, T, T], as torch.nn.MultiheadAttention computes them."""

    def split(x):
        return x.view(x.size(0), x.size(1), heads, -1).transpose(1, 2)

    scores = split(query) @ split(key).transpose(2, 3) / (query.size(2) / heads) ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask[:, None, None, :], float("-inf"))
    if causal:
        later = torch.ones(query.size(1), key.size(1), dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, float("-inf"))
    return scores.softmax(-1)


def self_attention_case(name, student, teacher, heads, mask=None, causal=False) -> dict:
    p = attention(*teacher, heads, mask, causal)

    def loss(query, key):
        q = attention(query, key, heads, mask, causal)
        each = torch.where(p > 0, p * (p.clamp_min(1e-38).log() - q.clamp_min(1e-38).log()), 0.0)
        each = each.sum(-1)  # [B, A, T]
        if mask is None:
            return each.mean()
        return each.transpose(1, 2)[mask].mean()

    more = {"heads": heads, "causal": causal} | ({"mask": mask} if mask is not None else {})
    return term_case(name, "self_attention", student, teacher, loss, **more)


def main() -> None:
    deterministic()
    student = table((7, 5), 1, 1) * 4
    teacher = table((7, 5), 1, 2) * 6
    other = table((7, 5), 1, 3) * 6
    target = labels_of((7,), 5, 11)
    tokens, token_teacher = table((4, 6, 3), 2, 1) * 4, table((4, 6, 3), 2, 2) * 6
    token_target = labels_of((4, 3), 6, 12)
    token_target[1, 1:] = IGNORED
    token_target[3, :] = IGNORED
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [1, 1, 1, 0]], dtype=torch.bool)
    narrow, wide = table((3, 4, 2), 3, 1), table((3, 4, 3), 3, 2)
    projection = table((3, 2), 3, 3)
    maps, teacher_maps = table((2, 3, 4, 5), 4, 1), table((2, 6, 4, 5), 4, 2)
    map_projection = table((6, 3), 4, 3)
    qk = [table((3, 4, 4), 5, 1) * 3, table((3, 4, 4), 5, 2) * 3]
    teacher_qk = [table((3, 4, 8), 5, 3) * 3, table((3, 4, 8), 5, 4) * 3]
    mse = torch.nn.MSELoss()
    write(
        "distill.json",
        "make_distill.py",
        {
            "ignored": IGNORED,
            "gradient": "of the value with respect to the student's logits or states",
            "logits": [
                logits_case("soft targets", student, [teacher], target, 4.0, 0.9),
                logits_case("soft targets alone", student, [teacher], target, 2.5, 1.0),
                logits_case("several teachers", student, [teacher, other], target, 4.0, 0.5, [1.0, 3.0]),
                logits_case("tokens", tokens, [token_teacher], token_target, 4.0, 0.75),
                logits_case("top 2", student, [teacher], target, 4.0, 1.0, k=2),
                logits_case("top 3 of tokens", tokens, [token_teacher], token_target, 2.5, 0.5, k=3),
                logits_case("top 1 of several teachers", student, [teacher, other], target, 4.0, 0.5, [1.0, 3.0], k=1),
            ],
            "terms": [
                term_case("states", "hidden", [wide * 2], [wide], lambda s: mse(s, wide)),
                term_case(
                    "a projection",
                    "hidden",
                    [narrow],
                    [wide],
                    lambda s: mse(F.linear(s, projection), wide),
                    projection=projection,
                ),
                term_case(
                    "padded positions",
                    "hidden",
                    [narrow],
                    [wide],
                    lambda s: mse(F.linear(s, projection)[mask], wide[mask]),
                    projection=projection,
                    mask=mask,
                ),
                term_case(
                    "convolutions",
                    "hidden_channels",
                    [maps],
                    [teacher_maps],
                    lambda s: mse(F.conv2d(s, map_projection[:, :, None, None]), teacher_maps),
                    projection=map_projection,
                ),
                term_case(
                    "attention transfer",
                    "spatial_attention",
                    [maps],
                    [teacher_maps],
                    lambda s: attention_transfer(s, teacher_maps),
                ),
                self_attention_case("self-attention", qk, teacher_qk, 2),
                self_attention_case("padded self-attention", qk, teacher_qk, 2, mask),
                self_attention_case("causal self-attention", qk, teacher_qk, 4, None, True),
            ],
        },
    )


if __name__ == "__main__":
    main()
