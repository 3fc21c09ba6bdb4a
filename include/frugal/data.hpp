// SPDX-License-Identifier: Apache-2.0
#pragma once

// Data, in memory and on disk: sets, loaders, shards, caches, text, images; and the policies that
// choose samples. What needs a library of a component (tables, JPEG, tar, vocabularies) is included by name:
// docs/data.md.

#include <frugal/core/source/range.hpp>
#include <frugal/data/cache/cache_folder.hpp>
#include <frugal/data/cache/cached.hpp>
#include <frugal/data/cache/offline.hpp>
#include <frugal/data/collate_then.hpp>
#include <frugal/data/dataset.hpp>
#include <frugal/data/image/annotated_batch.hpp>
#include <frugal/data/image/augment.hpp>
#include <frugal/data/image/coco_file.hpp>
#include <frugal/data/image/color.hpp>
#include <frugal/data/image/geometry.hpp>
#include <frugal/data/image/mix.hpp>
#include <frugal/data/limited.hpp>
#include <frugal/data/loading/loader.hpp>
#include <frugal/data/loading/prefetch.hpp>
#include <frugal/data/loading/transformed.hpp>
#include <frugal/data/mapped.hpp>
#include <frugal/data/mnist.hpp>
#include <frugal/data/pad.hpp>
#include <frugal/data/sampling/weighted.hpp>
#include <frugal/data/shards/folder_set.hpp>
#include <frugal/data/shards/npy_tensor.hpp>
#include <frugal/data/shards/record_set.hpp>
#include <frugal/data/shards/shard_order.hpp>
#include <frugal/data/shards/shard_writer.hpp>
#include <frugal/data/shards/text_lines.hpp>
#include <frugal/data/split.hpp>
#include <frugal/data/tensor_dataset.hpp>
#include <frugal/data/text/packed.hpp>
#include <frugal/data/text/token_transform.hpp>
#include <frugal/policy/curriculum.hpp>
#include <frugal/policy/importance.hpp>
