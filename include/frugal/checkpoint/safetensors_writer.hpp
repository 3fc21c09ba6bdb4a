// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/json_writer.hpp>
#include <frugal/base/utf8.hpp>
#include <frugal/checkpoint/dtype.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace frugal {

/// A sink: `write` takes all of the bytes, or throws.
template <class T>
concept ByteSink = requires(T& sink, std::span<std::byte const> bytes) { sink.write(bytes); };

/// Writes tensors as a safetensors file. The same tensors and metadata give the same bytes, in any
/// order of arguments: the bytes that the format's reference implementation writes (except for its
/// order of metadata, which is arbitrary).
///
/// Cost    the header; tensors go from their memory to the sink. Only `write` reads their bytes, so
///         a plan can be made once and written again whenever they have changed.
/// Errors  FormatError naming the tensor for anything that the format cannot hold or readers
///         refuse: duplicate names, the name __metadata__, text that is not UTF-8, bytes that do
///         not fit shape and dtype, more than 100,000,000 bytes of header.
class SafetensorsWriter {
 public:
  using Metadata = std::map<std::string, std::string>;

  /// The tensors' bytes must outlive the writer, names and shapes need not; errors call the file
  /// `name`.
  explicit SafetensorsWriter(std::vector<TensorView> tensors, Metadata const& metadata = {},
                             std::string name = "safetensors");

  /// The first bytes of the file: the header, after its length.
  std::string_view header() const noexcept { return header_; }
  /// Size of the whole file in bytes.
  std::uint64_t size() const noexcept { return header_.size() + data_size_; }

  /// Writes the file from first to last byte.
  template <ByteSink Sink>
  void write(Sink& sink) const {
    sink.write(std::as_bytes(std::span(header_)));
    // Small tensors are gathered: a system call for each would cost more than the copy.
    std::unique_ptr<std::byte[]> gathered;
    std::size_t filled = 0;
    auto const flush = [&] {
      if (filled != 0) sink.write(std::span<std::byte const>(gathered.get(), filled));
      filled = 0;
    };
    for (std::span<std::byte const> const bytes : data_) {
      std::size_t const size = bytes.size();
      if (size == 0) continue;
      if (size > gather_most || filled + size > gather_size) flush();
      if (size > gather_most) {
        sink.write(bytes);
        continue;
      }
      if (!gathered) gathered = std::make_unique_for_overwrite<std::byte[]>(gather_size);
      std::memcpy(gathered.get() + filled, bytes.data(), size);
      filled += size;
    }
    flush();
  }

 private:
  static constexpr std::size_t gather_size = std::size_t{64} << 10;
  static constexpr std::size_t gather_most = std::size_t{8} << 10;

  void check(TensorView const& tensor) const;

  void check_names(std::vector<TensorView> const& tensors) const;

  void write_header(std::vector<TensorView> const& tensors, Metadata const& metadata);

  void describe(detail::JsonWriter& out, TensorView const& tensor);

  std::string_view utf8(std::string_view text) const;

  [[noreturn]] void refuse(std::string_view tensor, std::string what, std::string why,
                           std::string fix) const;

  std::string name_;
  std::string header_;  ///< preceded by its length
  std::vector<std::span<std::byte const>> data_;
  std::uint64_t data_size_ = 0;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/checkpoint/safetensors_writer.ipp>
#endif
