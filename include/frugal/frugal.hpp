// SPDX-License-Identifier: Apache-2.0
#pragma once

// The core, the policies, metrics, and data in memory. In addition there are data.hpp (loaders, shards,
// text, images), report.hpp (prices, profiles, sinks, plans) and compare.hpp. core.hpp is the loop alone.

#include <torch/torch.h>

#include <frugal/core.hpp>
#include <frugal/core/compose/rational.hpp>
#include <frugal/core/run/binary_cross_entropy.hpp>
#include <frugal/core/run/report.hpp>
#include <frugal/core/source/range.hpp>
#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/core/state/state_writer.hpp>
#include <frugal/data/collate_then.hpp>
#include <frugal/data/dataset.hpp>
#include <frugal/data/limited.hpp>
#include <frugal/data/mapped.hpp>
#include <frugal/data/mnist.hpp>
#include <frugal/data/pad.hpp>
#include <frugal/data/split.hpp>
#include <frugal/data/tensor_dataset.hpp>
#include <frugal/metrics/accuracy.hpp>
#include <frugal/metrics/confusion_matrix.hpp>
#include <frugal/metrics/ignore_index.hpp>
#include <frugal/metrics/perplexity.hpp>
#include <frugal/metrics/precision_recall.hpp>
#include <frugal/metrics/regression.hpp>
#include <frugal/metrics/roc_auc.hpp>
#include <frugal/metrics/top_k.hpp>
#include <frugal/model/load_weights.hpp>
#include <frugal/policy/accumulate.hpp>
#include <frugal/policy/accumulate/split.hpp>
#include <frugal/policy/activations.hpp>
#include <frugal/policy/auto_batch.hpp>
#include <frugal/policy/average.hpp>
#include <frugal/policy/callback.hpp>
#include <frugal/policy/checkpoint.hpp>
#include <frugal/policy/checkpoint/find.hpp>
#include <frugal/policy/checkpoint/weights.hpp>
#include <frugal/policy/clip.hpp>
#include <frugal/policy/cuda_graph.hpp>
#include <frugal/policy/device_prefetch.hpp>
#include <frugal/policy/dry_run.hpp>
#include <frugal/policy/early_stop.hpp>
#include <frugal/policy/flush_denormals.hpp>
#include <frugal/policy/keep_host_memory.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/policy/precision.hpp>
#include <frugal/policy/recipe_name.hpp>
#include <frugal/policy/recompute.hpp>
#include <frugal/policy/rollback.hpp>
#include <frugal/policy/schedule.hpp>
#include <frugal/policy/skip_non_finite.hpp>
#include <frugal/policy/spot.hpp>
#include <frugal/policy/start_on.hpp>
#include <frugal/policy/stop_after.hpp>
#include <frugal/policy/train_metrics.hpp>
#include <frugal/policy/validate.hpp>
#include <frugal/report/explain.hpp>
#include <frugal/report/log.hpp>
#include <frugal/report/progress.hpp>
#include <frugal/report/throughput.hpp>
#include <frugal/version.hpp>
