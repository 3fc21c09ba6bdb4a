# SPDX-License-Identifier: Apache-2.0
"""Loading: batches of resident tensors against torch's DataLoader and one memcpy, and a starved job."""

from common import all_told, told

SAMPLES, FEATURES, BATCH, REPEATS = 60000, 784, 256, 9

DATA_LOADER = f"""
import json, statistics, time, torch
torch.set_num_threads(1)
torch.manual_seed(1)
data, target = torch.rand({SAMPLES}, {FEATURES}), torch.randint(10, ({SAMPLES},))
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(data, target), batch_size={BATCH},
                                     shuffle=True, drop_last=True, num_workers=0)
spent = []
for _ in range(3):
    begin = time.perf_counter()
    count = sum(1 for _ in loader)
    spent.append(1e6 * (time.perf_counter() - begin) / count)
print(json.dumps({{"batch_us": statistics.median(spent)}}))
"""


def measure(build, tools) -> list[dict]:
    lines = all_told([str(build / "bench" / "data_loading"), "--samples", str(SAMPLES), "--features", str(FEATURES),
                      "--batch", str(BATCH), "--repeats", str(REPEATS)])
    ours = {line["what"]: line for line in lines}
    resident = ours["resident"]
    theirs = told([*tools, "-c", DATA_LOADER])["batch_us"]
    return [
        {"name": f"resident batches of {BATCH}", "ours": resident["batch_us"], "theirs": theirs, "unit": "us",
         "than": "torch DataLoader", "ratio": theirs / resident["batch_us"], "bar": 10, "way": "least"},
        {"name": "the same against one memcpy of the batch", "ours": resident["batch_us"],
         "theirs": resident["memcpy_us"], "unit": "us", "than": "memcpy",
         "ratio": resident["batch_us"] / resident["memcpy_us"], "bar": 1.3, "way": "most"},
        {"name": "utilisation with 20 ms of transform per sample", "ours": 100 * ours["starved"]["utilisation"],
         "theirs": None, "unit": "%", "ratio": ours["starved"]["utilisation"], "bar": 0.4, "way": "most"},
        {"name": "utilisation with the transform cached", "ours": 100 * ours["cached"]["utilisation"],
         "theirs": None, "unit": "%", "ratio": ours["cached"]["utilisation"], "bar": 0.95, "way": "least"},
    ]
