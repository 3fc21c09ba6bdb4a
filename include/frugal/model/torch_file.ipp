// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/torch_file.hpp>

#include <frugal/data/tensor_dtype.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <array>
#include <memory>
#include <utility>
#include <vector>

namespace frugal::detail {

FRUGAL_INLINE at::ScalarType torch_type(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, at::ScalarType>, pickle_types.size()> types{{
      {"float32", at::kFloat},
      {"float64", at::kDouble},
      {"float16", at::kHalf},
      {"bfloat16", at::kBFloat16},
      {"int64", at::kLong},
      {"int32", at::kInt},
      {"int16", at::kShort},
      {"int8", at::kChar},
      {"uint8", at::kByte},
      {"bool", at::kBool},
      {"complex64", at::kComplexFloat},
      {"complex128", at::kComplexDouble},
      {"uint16", at::kUInt16},
      {"uint32", at::kUInt32},
      {"uint64", at::kUInt64},
      {"float8_e4m3fn", at::kFloat8_e4m3fn},
      {"float8_e5m2", at::kFloat8_e5m2},
      {"float8_e4m3fnuz", at::kFloat8_e4m3fnuz},
      {"float8_e5m2fnuz", at::kFloat8_e5m2fnuz},
      {"float8_e8m0fnu", at::kFloat8_e8m0fnu},
  }};
  for (auto const& [pickled, type] : types) {
    if (pickled == name) return type;
  }
  return at::ScalarType::Undefined;
}

FRUGAL_INLINE StoredWeights TorchFile::read(std::filesystem::path const& path,
                                            std::string const& within) {
  auto file = std::make_shared<MappedFile>(path, MappedFile::Access::normal);
  StoredWeights weights(path.string());
  try {
    TorchFile(*file, path.string()).fill(weights, within);
  } catch (c10::Error const& error) {
    std::string const why = error.what_without_backtrace();
    refuse(path.string(), "LibTorch cannot read the archive: " + why.substr(0, why.find('\n')));
  }
  weights.keep(std::move(file));
  return weights;
}

FRUGAL_INLINE TorchFile::TorchFile(MappedFile const& file, std::string place)
    : place_(std::move(place)),
      bytes_(file.bytes()),
      archive_(std::make_shared<MappedZip>(file.bytes())) {}

FRUGAL_INLINE void TorchFile::refuse(std::string where, std::string why) {
  throw FormatError({.what = "the file is no state dict of torch.save, or is damaged",
                     .where = std::move(where),
                     .why = std::move(why),
                     .fix = "Restore it from a copy, or save the tensors again."});
}

FRUGAL_INLINE void TorchFile::fill(StoredWeights& weights, std::string const& within) {
  if (archive_.hasRecord("byteorder") && text_of("byteorder") != "little") {
    refuse(place_, "its byte order is " + text_of("byteorder"));
  }
  std::string const text = text_of("data.pkl");
  TensorPickle const pickle(text, place_);
  PickleValue const& dict = state_dict(pickle.root(), within);
  for (std::size_t i = 0; i < dict.items.size(); i += 2) {
    if (!dict.items[i]->is(PickleValue::Kind::text)) {
      refuse(place_, "a key of the state dict is not a text");
    }
    std::string const key(dict.items[i]->text);
    if (!dict.items[i + 1]->is(PickleValue::Kind::tensor)) {
      refuse(place_, "'" + shown(key) + "' is no tensor");
    }
    if (!weights.add(weight_of(key, *dict.items[i + 1]))) {
      refuse(place_, "'" + shown(key) + "' is there twice");
    }
  }
}

FRUGAL_INLINE std::string TorchFile::text_of(std::string const& record) {
  static_cast<void>(bytes_of(record));  // LibTorch allocates the size that the archive claims
  auto const [data, size] = archive_.getRecord(record);
  return {static_cast<char const*>(data.get()), size};
}

FRUGAL_INLINE PickleValue const& TorchFile::state_dict(PickleValue const& root,
                                                       std::string const& within) const {
  if (within.empty() && is_state_dict(root)) return root;
  constexpr std::array<char const*, 4> usual{"state_dict", "model_state_dict", "model", "module"};
  std::vector<PickleValue const*> found;
  for (std::string const key : usual) {
    PickleValue const* const each = root.find(key);
    if (within.empty() && each != nullptr && is_state_dict(*each)) found.push_back(each);
  }
  if (!within.empty()) {
    PickleValue const* const named = root.find(within);
    if (named != nullptr && named->is(PickleValue::Kind::dict)) found.push_back(named);
  }
  if (found.size() == 1) return *found[0];
  std::string keys;
  constexpr std::size_t most = 50;  // a file may have millions, or one of megabytes
  for (std::size_t i = 0; root.is(PickleValue::Kind::dict) && i < root.items.size(); i += 2) {
    if (!root.items[i]->is(PickleValue::Kind::text)) continue;
    if (i / 2 == most) {
      keys += " and others";
      break;
    }
    keys += (keys.empty() ? "'" : ", '") + shown(root.items[i]->text) + "'";
  }
  throw FormatError({.what = within.empty() ? "the file is not one state dict"
                                            : "the file has no state dict under '" + within + "'",
                     .where = place_,
                     .why = keys.empty() ? "it is not a dict with names" : "its keys are " + keys,
                     .fix = "Name the key of the state dict in WeightRules::within, or save "
                            "model.state_dict() alone."});
}

FRUGAL_INLINE StoredWeight TorchFile::weight_of(std::string const& name,
                                                PickleValue const& tensor) {
  if (!tensor.view.empty()) {
    throw FormatError({.what = "a tensor is stored as a view that changes its numbers",
                       .where = place_,
                       .why = "'" + shown(name) + "' has the bit '" + shown(tensor.view) +
                              "': the file has its numbers before they are conjugated or negated",
                       .fix = "Save tensor.resolve_conj().resolve_neg()."});
  }
  at::ScalarType const type = torch_type(tensor.type);
  StoredWeight weight{.name = name,
                      .type_name = std::string(at::toString(type)),
                      .type = type,
                      .sizes = tensor.sizes,
                      .strides = tensor.strides,
                      .bytes = {}};
  if (auto const stored = stored_type(type)) weight.type_name = dtype_name(*stored);
  auto const width = static_cast<std::int64_t>(c10::elementSize(type));
  bool const empty = std::find(weight.sizes.begin(), weight.sizes.end(), 0) != weight.sizes.end();
  std::int64_t last = tensor.number, count = 1;
  bool too_large = last < 0;
  for (std::size_t i = 0; i < weight.sizes.size() && !empty; ++i) {
    std::int64_t step = 0;
    too_large |= __builtin_mul_overflow(weight.sizes[i] - 1, weight.strides[i], &step) ||
                 __builtin_add_overflow(last, step, &last) ||
                 __builtin_mul_overflow(count, weight.sizes[i], &count);
  }
  std::span<std::byte const> const storage = storage_of(*tensor.storage);
  std::int64_t const there = static_cast<std::int64_t>(storage.size()) / width;
  if (too_large || (!empty && last >= there)) {
    refuse(place_, "'" + shown(name) + "' is " + weight.type_and_shape() +
                       ", and its storage has " + std::to_string(there) + " elements");
  }
  if (!empty) {
    weight.bytes = storage.subspan(static_cast<std::size_t>(tensor.number * width),
                                   static_cast<std::size_t>((last - tensor.number + 1) * width));
  }
  return weight;
}

FRUGAL_INLINE std::span<std::byte const> TorchFile::storage_of(PickleValue const& storage) {
  auto const [known, added] = storages_.try_emplace(std::string(storage.text));
  if (added) known->second = bytes_of("data/" + known->first);
  return known->second;
}

FRUGAL_INLINE std::span<std::byte const> TorchFile::bytes_of(std::string const& record) {
  if (!archive_.hasRecord(record)) refuse(place_, "it has no entry " + shown(record));
  constexpr std::size_t method = 8, method_bytes = 2;  // in a zip entry's local header
  std::size_t const header = archive_.getRecordHeaderOffset(record);
  std::size_t const begin = archive_.getRecordOffset(record);
  std::size_t const size = archive_.getRecordSize(record);
  if (begin > bytes_.size() || header > begin || begin - header < method + method_bytes) {
    refuse(place_, "its entry " + record + " ends after the file");
  }
  auto const packed = bytes_.subspan(header + method, method_bytes);
  if (packed[0] != std::byte{0} || packed[1] != std::byte{0}) {
    refuse(place_, "its entry " + record + " is compressed, which torch.save does not do");
  }
  if (size > bytes_.size() - begin) {
    refuse(place_, "its entry " + record + " ends after the file");
  }
  return bytes_.subspan(begin, size);
}

}  // namespace frugal::detail
