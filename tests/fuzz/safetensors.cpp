// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any bytes are either refused with a FormatError, or give tensors that cover the file's
// data exactly once, are found by their names, and survive writing and reading unchanged.
// Everything else ends the program; the sanitizers check the rest.
#include <frugal/checkpoint/safetensors.hpp>
#include <frugal/checkpoint/safetensors_writer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "demand.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

using frugal::Safetensors;
using frugal::SafetensorsWriter;
using frugal::TensorView;

using frugal_fuzz::demand;

struct Sink {
  void write(std::span<std::byte const> piece) {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
  }
  std::vector<std::byte> bytes;
};

bool same(TensorView const& a, TensorView const& b) {
  return a.name == b.name && a.dtype == b.dtype && std::ranges::equal(a.shape, b.shape) &&
         std::ranges::equal(a.bytes, b.bytes);
}

std::vector<TensorView> tensors_of(Safetensors const& file, std::span<std::byte const> bytes) {
  std::vector<TensorView> tensors;
  std::byte const* at = nullptr;
  for (std::size_t i = 0; i < file.size(); ++i) {
    TensorView const tensor = file[i];
    auto const found = file.find(tensor.name);
    demand(found && same(*found, tensor), "a tensor is found by its name");
    demand(at == nullptr || tensor.bytes.data() == at, "tensors lie one behind the other");
    at = tensor.bytes.data() + tensor.bytes.size();
    demand(tensor.bytes.data() >= bytes.data() + 8, "tensors lie behind the header");
    tensors.push_back(tensor);
  }
  demand(at == nullptr || at == bytes.data() + bytes.size(), "the last tensor ends the file");
  return tensors;
}

SafetensorsWriter::Metadata metadata_of(Safetensors const& file) {
  SafetensorsWriter::Metadata metadata;
  for (auto const& [key, value] : file.metadata()) {
    demand(file.metadata(key) == value, "metadata is found by its key");
    demand(metadata.emplace(key, value).second, "no key stands twice");
  }
  return metadata;
}

std::vector<std::byte> written(std::vector<TensorView> tensors,
                               SafetensorsWriter::Metadata const& metadata) {
  SafetensorsWriter const writer(std::move(tensors), metadata);
  Sink sink;
  writer.write(sink);
  demand(sink.bytes.size() == writer.size(), "a file has the size that its writer says");
  return sink.bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  auto const bytes = std::as_bytes(std::span(data, size));
  try {
    Safetensors const file = Safetensors::parse(bytes, "fuzz");
    auto tensors = tensors_of(file, bytes);
    auto const metadata = metadata_of(file);
    auto const copy = written(tensors, metadata);
    Safetensors const again = Safetensors::parse(copy, "copy");
    demand(again.size() == file.size(), "as many tensors are read as were written");
    for (TensorView const& tensor : tensors) {
      auto const found = again.find(tensor.name);
      demand(found && same(*found, tensor), "a tensor is the same after writing and reading");
    }
    demand(metadata_of(again) == metadata, "metadata is the same after writing and reading");
    std::reverse(tensors.begin(), tensors.end());
    demand(written(tensors, metadata) == copy, "the order of the tensors does not change the file");
  } catch (frugal::FormatError const& error) {
    demand(!error.fault().what.empty() && error.fault().where.starts_with("fuzz"),
           "a damaged file is refused with what and where");
  }
  return 0;
}

/// Mutates, and then usually corrects the length for a header that ends at the last brace:
/// otherwise hardly any mutation would get past the first eight bytes.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  size = LLVMFuzzerMutate(data, size, most);
  if (size < 10 || seed % 8 == 0) return size;
  auto const* const end = data + size;
  std::uint8_t const* brace = end;
  while (brace != data + 8 && *(brace - 1) != '}') --brace;
  std::uint64_t const length =
      static_cast<std::uint64_t>((brace == data + 8 ? end : brace) - data) - 8;
  std::memcpy(data, &length, sizeof length);
  return size;
}
