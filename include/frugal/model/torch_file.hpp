// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/Exception.h>
#include <caffe2/serialize/inline_container.h>
#include <caffe2/serialize/read_adapter_interface.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include <frugal/base/file.hpp>
#include <frugal/model/stored_weights.hpp>
#include <frugal/model/tensor_pickle.hpp>

namespace frugal::detail {

/// LibTorch's type of the name that a pickle has for it.
at::ScalarType torch_type(std::string_view name);

/// The bytes of a mapped file, for LibTorch's reader of zip archives. A damaged archive may ask for
/// bytes that are not there.
class MappedZip final : public caffe2::serialize::ReadAdapterInterface {
 public:
  explicit MappedZip(std::span<std::byte const> bytes) : bytes_(bytes) {}
  std::size_t size() const override { return bytes_.size(); }
  std::size_t read(std::uint64_t at, void* to, std::size_t count, char const*) const override {
    if (at > bytes_.size()) return 0;
    std::size_t const there = std::min<std::uint64_t>(count, bytes_.size() - at);
    if (there != 0) std::memcpy(to, bytes_.data() + at, there);
    return there;
  }

 private:
  std::span<std::byte const> bytes_;
};

/// Reads a file of torch.save: a zip archive with a pickle and one entry a storage. The storages stay
/// where the file is mapped.
class TorchFile {
 public:
  static constexpr std::string_view magic = "PK\x03\x04";

  /// `within`: the key of the state dict in a file that has more; empty: found by itself.
  /// Errors  FormatError for a file that is damaged, or has code; StoreError if it cannot be read.
  static StoredWeights read(std::filesystem::path const& path, std::string const& within);

  /// Whether a file is one of torch.save before version 1.6, or with a setting: a bare pickle, whose
  /// storages follow it.
  static bool is_legacy(std::string_view begin) {
    return begin.starts_with(std::string_view("\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19", 14));
  }

 private:
  TorchFile(MappedFile const& file, std::string place);

  [[noreturn]] static void refuse(std::string where, std::string why);

  void fill(StoredWeights& weights, std::string const& within);

  std::string text_of(std::string const& record);

  static bool is_state_dict(PickleValue const& value) {
    bool all = value.is(PickleValue::Kind::dict) && !value.items.empty();
    for (std::size_t i = 1; all && i < value.items.size(); i += 2) {
      all = value.items[i]->is(PickleValue::Kind::tensor);
    }
    return all;
  }

  /// The dict itself, or the one that it has under the key that `within` names, or under one of those
  /// that training programs use.
  PickleValue const& state_dict(PickleValue const& root, std::string const& within) const;

  StoredWeight weight_of(std::string const& name, PickleValue const& tensor);

  /// The bytes of a storage, in the file.
  std::span<std::byte const> storage_of(PickleValue const& storage);

  /// An entry of the archive, in the file.
  std::span<std::byte const> bytes_of(std::string const& record);

  std::string place_;
  std::span<std::byte const> bytes_;
  caffe2::serialize::PyTorchStreamReader archive_;
  std::map<std::string, std::span<std::byte const>> storages_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/model/torch_file.ipp>
#endif
