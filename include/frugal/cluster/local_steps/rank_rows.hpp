// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/Storage.h>
#include <c10/core/StorageImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include <frugal/cluster/agreement/same_run.hpp>
#include <frugal/cluster/communicator.hpp>
#include <frugal/core/libtorch/finite.hpp>
#include <frugal/core/run/counters.hpp>
#include <frugal/core/state/state_dict.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/checkpoint/state_file.hpp>

namespace frugal::detail {

/// An empty tensor in host memory over a file without a name in `folder`: the kernel writes its pages
/// out where memory is short, so that a save of many processes' tensors needs the disk rather than
/// memory. Small ones, and all where the file cannot be had, are plain memory.
inline at::Tensor scratch_tensor(std::filesystem::path const& folder,
                                 std::vector<std::int64_t> const& sizes, at::ScalarType type,
                                 std::size_t least = std::size_t{1} << 20) {
  at::Tensor const like = at::empty(sizes, at::TensorOptions().dtype(type).device(at::kMeta));
  std::size_t const bytes = like.nbytes();
  auto const plain = [&] { return at::empty(sizes, type); };
  if (bytes == 0 || bytes < least || folder.empty()) return plain();
  std::string name = (folder / "scratch.XXXXXX").string();
  int const file = ::mkostemp(name.data(), O_CLOEXEC);
  if (file < 0) return plain();
  ::unlink(name.c_str());
  // On a full disk a write to a page would end the process.
  bool const is_on_disk = ::posix_fallocate(file, 0, static_cast<off_t>(bytes)) == 0;
  void* const data =
      is_on_disk ? ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  ::close(file);
  if (data == MAP_FAILED) return plain();
  struct Mapping {
    void* data;
    std::size_t bytes;
    static void release(void* self) {
      auto* const mapping = static_cast<Mapping*>(self);
      ::munmap(mapping->data, mapping->bytes);
      delete mapping;
    }
  };
  // With an allocator, although it has not made it: without one StateWriter copies a tensor.
  auto storage = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), bytes,
      c10::DataPtr(data, new Mapping{data, bytes}, &Mapping::release, c10::Device(at::kCPU)),
      c10::GetCPUAllocator(), /*resizable=*/false);
  return at::empty({0}, type).set_(c10::Storage(std::move(storage)), 0, like.sizes(),
                                   like.strides());
}

/// What a row of a checkpoint needs to know of a tensor: its type and its sizes, as a text.
struct TensorShape {
  at::ScalarType type = at::kFloat;
  std::vector<std::int64_t> sizes{};

  static std::string text_of(at::Tensor const& tensor) {
    std::string text = std::to_string(static_cast<int>(tensor.scalar_type()));
    for (std::int64_t const size : tensor.sizes()) text += ' ' + std::to_string(size);
    return text;
  }
  static TensorShape of_text(std::string const& text) {
    TensorShape shape;
    std::vector<std::int64_t> numbers;
    char const* at = text.data();
    char const* const end = at + text.size();
    while (at < end) {
      std::int64_t number = 0;
      auto const [stop, error] = std::from_chars(at, end, number);
      if (error != std::errc()) break;
      numbers.push_back(number);
      at = stop + 1;
    }
    shape.type = static_cast<at::ScalarType>(numbers.at(0));
    shape.sizes.assign(numbers.begin() + 1, numbers.end());
    return shape;
  }
};

[[noreturn]] inline void refuse_row(std::size_t rank, std::string const& tensor,
                                    Counters const& at) {
  throw NonFiniteWeightsError(
      {.what = "the weights of a process are not finite",
       .where = "rank " + std::to_string(rank) + ", tensor '" + tensor + "', step " +
                std::to_string(at.step),
       .why = "a gradient was NaN or infinite, or an update overflowed",
       .fix = "Checkpoints before it are whole. Add SkipNonFinite, which skips such windows, or "
              "lower the learning rate."},
      {at.epoch, LossError::Window::elsewhere, at.step}, std::numeric_limits<double>::quiet_NaN());
}

/// Gives the first process what the others hold for themselves, so that one checkpoint has all of it:
/// first the numbers of all, then one tensor after the other. All processes call it at the same
/// moment, for a save.
///
/// `mine`: what this process holds, with its tensors where they are. In the first process
/// `value(rank, path, value)` and `tensor(rank, path, tensor)` are called for each of the others;
/// `value` is not for what says only that there is a tensor.
/// NonFiniteWeightsError, in all processes, if one of them holds a number that no checkpoint takes.
///
/// The first process receives tensors into files without a name in `folder`, and not into memory.
template <class OnValue, class OnTensor>
void collect_rows(Communicator& all, StateDict const& mine, Counters const& at,
                  std::filesystem::path const& folder, OnValue&& value, OnTensor&& tensor) {
  at::NoGradGuard const no_gradients;
  constexpr char const* what = "the state of a process for a checkpoint";
  static constexpr char const* bad_key = "bad";
  static constexpr char const* values_key = "value ";
  static constexpr char const* tensors_key = "tensor ";
  StateFile sent;
  for (auto const& [path, each] : mine.values) sent.values.emplace(values_key + path, each);
  std::vector<std::string> paths;
  std::vector<at::Tensor> tensors;
  for (auto const& [path, each] : mine.tensors) {
    sent.values.emplace(tensors_key + path, TensorShape::text_of(each));
    paths.push_back(path);
    tensors.push_back(each);
  }
  if (auto const bad = first_non_finite(tensors)) sent.values.emplace(bad_key, paths[*bad]);

  std::vector<std::string> const texts = gather_texts(all, sent.text(), what);
  std::vector<StateFile> rows;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    rows.push_back(StateFile::parse(texts[rank], "rank " + std::to_string(rank)));
    auto const bad = rows.back().values.find(bad_key);
    if (bad == rows.back().values.end()) continue;
    refuse_row(rank, std::get<std::string>(bad->second), at);
  }
  if (all.rank() != 0) {
    for (at::Tensor const& each : tensors) {
      if (each.numel() != 0) all.send_to_first(each.cpu().contiguous(), what);
    }
    return;
  }
  for (std::size_t rank = 1; rank < rows.size(); ++rank) {
    for (auto const& [key, each] : rows[rank].values) {
      if (!key.starts_with(values_key)) continue;
      std::string const path = key.substr(std::string(values_key).size());
      if (!rows[rank].values.contains(tensors_key + path)) value(rank, path, each);
    }
    for (auto const& [key, each] : rows[rank].values) {
      if (!key.starts_with(tensors_key)) continue;
      TensorShape const shape = TensorShape::of_text(std::get<std::string>(each));
      at::Tensor const received = scratch_tensor(folder, shape.sizes, shape.type);
      if (received.numel() != 0) all.receive(received, static_cast<int>(rank), what);
      tensor(rank, key.substr(std::string(tensors_key).size()), received);
    }
  }
}

}  // namespace frugal::detail
