// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/cluster/local_steps/rank_rows.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <c10/core/CPUAllocator.h>
#include <c10/core/Storage.h>
#include <c10/core/StorageImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <charconv>
#include <limits>
#include <system_error>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE at::Tensor scratch_tensor(std::filesystem::path const& folder,
                                        std::vector<std::int64_t> const& sizes, at::ScalarType type,
                                        std::size_t least) {
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

FRUGAL_INLINE TensorShape TensorShape::of_text(std::string const& text) {
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

FRUGAL_INLINE void refuse_row(std::size_t rank, std::string const& tensor, Counters const& at) {
  throw NonFiniteWeightsError(
      {.what = "the weights of a process are not finite",
       .where = "rank " + std::to_string(rank) + ", tensor '" + tensor + "', step " +
                std::to_string(at.step),
       .why = "a gradient was NaN or infinite, or an update overflowed",
       .fix = "Checkpoints before it are whole. Add SkipNonFinite, which skips such windows, or "
              "lower the learning rate."},
      {at.epoch, LossError::Window::elsewhere, at.step}, std::numeric_limits<double>::quiet_NaN());
}

}  // namespace frugal::detail
