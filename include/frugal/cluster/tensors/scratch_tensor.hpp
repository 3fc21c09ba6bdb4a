// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <ATen/ATen.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/Storage.h>
#include <c10/core/StorageImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

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

}  // namespace frugal::detail
