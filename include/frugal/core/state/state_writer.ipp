// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/state/state_writer.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <utility>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE Blocks blocks_for(std::vector<std::size_t> const& bytes) {
  constexpr std::size_t alignment = 64;
  constexpr std::size_t small = std::size_t{1} << 20;  // not worth another block
  auto const aligned = [](std::size_t size) {
    return std::max((size + alignment - 1) / alignment, std::size_t{1}) * alignment;
  };
  std::vector<std::size_t> left(bytes.size());
  std::iota(left.begin(), left.end(), std::size_t{0});
  std::stable_sort(left.begin(), left.end(),
                   [&](std::size_t a, std::size_t b) { return bytes[a] > bytes[b]; });
  std::size_t total = 0;
  for (std::size_t const each : bytes) total += aligned(each);

  Blocks blocks{.sizes = {}, .slots = std::vector<Blocks::Slot>(bytes.size())};
  while (!left.empty()) {
    std::size_t const largest = aligned(bytes[left.front()]);
    std::size_t size = total <= small ? std::bit_ceil(total) : std::bit_floor(total);
    if (size < largest) size = std::bit_ceil(largest);
    std::size_t end = 0;
    std::vector<std::size_t> rest;
    for (std::size_t const each : left) {
      std::size_t const length = aligned(bytes[each]);
      if (end + length > size) {
        rest.push_back(each);
        continue;
      }
      blocks.slots[each] = {blocks.sizes.size(), end};
      end += length;
      total -= length;
    }
    blocks.sizes.push_back(size);
    left = std::move(rest);
  }
  return blocks;
}

FRUGAL_INLINE std::vector<at::Tensor> page_locked_like(std::vector<at::Tensor> const& all) {
  std::vector<std::size_t> bytes;
  bytes.reserve(all.size());
  for (at::Tensor const& each : all) bytes.push_back(each.nbytes());
  Blocks const blocks = blocks_for(bytes);
  auto const options = at::TensorOptions().device(at::kCPU).pinned_memory(true);
  std::vector<at::Tensor> memory;
  memory.reserve(blocks.sizes.size());
  for (std::size_t const size : blocks.sizes) {
    memory.push_back(at::empty({static_cast<std::int64_t>(size)}, options.dtype(at::kByte)));
  }
  std::vector<at::Tensor> made;
  made.reserve(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto const [block, offset] = blocks.slots[i];
    made.push_back(at::empty({0}, at::TensorOptions().dtype(all[i].scalar_type()))
                       .set_(memory[block].storage(),
                             static_cast<std::int64_t>(offset / all[i].itemsize()),
                             all[i].sizes()));
  }
  return made;
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE void StateWriter::give(std::string const& name, at::Tensor tensor) {
  std::string const path = path_(name);
  note(path);
  put_text(path, "tensor");
  if (saves(path)) memory_.tensors[path] = std::move(tensor);
}

FRUGAL_INLINE void StateWriter::part(std::string const& name, at::Tensor const& mine,
                                     TensorPart const& which) {
  std::string const path = path_(name);
  note(path);
  if (!whole || !mine.defined()) return put_tensor(path, mine);
  put_text(path, "tensor");
  at::Tensor const all = whole(mine, which);
  if (!all.defined()) {
    if (elsewhere != nullptr) elsewhere->push_back(path);
    return;
  }
  bool const rounds = floats_ != at::ScalarType::Undefined && all.is_floating_point();
  if (all.is_same(mine) || rounds) {
    keep(memory_.tensors[path], all.detach());
  } else {
    memory_.tensors[path] = all.detach().contiguous();  // nobody else has it
  }
}

FRUGAL_INLINE void StateWriter::finish() {
  written_.clear();
  if (missing_.empty()) return;
  std::vector<at::Tensor> like;
  like.reserve(missing_.size());
  for (Missing const& each : missing_) {
    like.push_back(
        at::empty(each.value.sizes(), at::TensorOptions().dtype(each.type).device(at::kMeta)));
  }
  std::vector<at::Tensor> const made = detail::page_locked_like(like);
  for (std::size_t i = 0; i < missing_.size(); ++i) {
    *missing_[i].kept = made[i];
    missing_[i].kept->copy_(missing_[i].value, /*non_blocking=*/true);
  }
  missing_.clear();
}

FRUGAL_INLINE void StateWriter::put_absent(std::string const& path) { memory_.values[path] = {}; }

FRUGAL_INLINE void StateWriter::put_truth_value(std::string const& path, bool value) {
  memory_.values[path] = value;
}

FRUGAL_INLINE void StateWriter::put_real(std::string const& path, double value) {
  memory_.values[path] = value;
}

FRUGAL_INLINE void StateWriter::put_signed(std::string const& path, std::int64_t value) {
  memory_.values[path] = value;
}

FRUGAL_INLINE void StateWriter::put_unsigned(std::string const& path, std::uint64_t value) {
  memory_.values[path] = value;
}

FRUGAL_INLINE void StateWriter::put_text(std::string const& path, std::string_view value) {
  memory_.values[path] = std::string(value);
}

FRUGAL_INLINE void StateWriter::put_tensor(std::string const& path, at::Tensor const& value) {
  put_absent(path);
  if (!value.defined()) return;
  put_text(path, "tensor");
  if (saves(path)) keep(memory_.tensors[path], value.detach());
}

FRUGAL_INLINE void StateWriter::note(std::string const& path) {
  if (written_.insert(path).second) return;
  throw StateError({.what = "two values are saved under one name",
                    .where = path,
                    .why = "the second would replace the first, and both would load from it",
                    .fix = "In persist(), give the second another name or its own scope."});
}

FRUGAL_INLINE bool StateWriter::saves(std::string const& path) const {
  if (!parts_alone) return true;
  if (places == nullptr || places->empty()) return false;
  return places->find(path) == nullptr || places->saves(path);
}

FRUGAL_INLINE void StateWriter::keep(at::Tensor& kept, at::Tensor const& value) {
  at::ScalarType const type = floats_ != at::ScalarType::Undefined && value.is_floating_point()
                                  ? floats_
                                  : value.scalar_type();
  // A tensor around foreign memory (from_blob) has no allocator, and may outlive that memory.
  bool const stays = copies_ == CopyTarget::live ||
                     (copies_ == CopyTarget::none && value.is_cpu() && value.is_contiguous());
  if (stays && type == value.scalar_type() && value.has_storage() &&
      value.storage().allocator() != nullptr) {
    kept = value;
    return;
  }
  bool const there = copies_ == CopyTarget::on_device || copies_ == CopyTarget::live;
  at::Device const device = there ? value.device() : at::Device(at::kCPU);
  // Only copies to page-locked memory are asynchronous.
  bool const page_locked = device.is_cpu() && !value.is_cpu();
  bool const fits = kept.defined() && kept.scalar_type() == type && kept.device() == device &&
                    kept.sizes() == value.sizes() && (!page_locked || kept.is_pinned());
  if (page_locked && !fits) {
    missing_.push_back({&kept, value, type});
    return;
  }
  // The tensor at the path may be the run's own.
  bool const borrowed =
      copies_ == CopyTarget::live || (copies_ == CopyTarget::none && !page_locked);
  if (!fits || borrowed) {
    kept = at::empty(value.sizes(), value.options().dtype(type).device(device));
  }
  kept.copy_(value, /*non_blocking=*/!value.is_cpu());
}

}  // namespace frugal
