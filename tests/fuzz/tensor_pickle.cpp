// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any bytes are either refused with a FormatError that is short, or are values of which
// each has a byte of its own, whose texts are in the bytes, and whose tensors have a type, a storage
// and as many strides as sizes. Everything else ends the program; the sanitizers check the rest.
// Seeds are pickles of Python's torch.save, from tests/reference/torch_files.json.
#include <frugal/model/tensor_pickle.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "demand.hpp"

namespace {

using frugal::detail::PickleValue;
using frugal::detail::TensorPickle;
using Kind = PickleValue::Kind;

using frugal_fuzz::demand;

void look_at_tensor(PickleValue const& tensor) {
  auto const not_negative = [](std::int64_t value) { return value >= 0; };
  demand(tensor.sizes.size() == tensor.strides.size(), "a tensor has as many strides as sizes");
  demand(tensor.sizes.size() <= 64, "a tensor has the dimensions that LibTorch has at most");
  demand(std::ranges::all_of(tensor.sizes, not_negative) &&
             std::ranges::all_of(tensor.strides, not_negative),
         "sizes and strides are not negative");
  demand(std::ranges::any_of(frugal::detail::pickle_types,
                             [&](auto const& each) { return each.plain == tensor.type; }),
         "a tensor has a type");
  demand(tensor.storage != nullptr && tensor.storage->is(Kind::storage), "a tensor has a storage");
}

/// A pickle may refer to itself, so each value is visited once.
void look_at_all(PickleValue const& root, std::string_view bytes) {
  std::unordered_set<PickleValue const*> seen{&root};
  std::vector<PickleValue const*> open{&root};
  auto const visit = [&](PickleValue const* value) {
    if (seen.insert(value).second) open.push_back(value);
  };
  while (!open.empty()) {
    PickleValue const& value = *open.back();
    open.pop_back();
    if ((value.is(Kind::text) || value.is(Kind::storage)) && !value.text.empty()) {
      demand(value.text.data() >= bytes.data() &&
                 value.text.data() + value.text.size() <= bytes.data() + bytes.size(),
             "a text is in the bytes");
    }
    demand(!value.is(Kind::dict) || value.items.size() % 2 == 0, "each key has a value");
    if (value.is(Kind::tensor)) {
      look_at_tensor(value);
      visit(value.storage);
    }
    for (PickleValue const* const item : value.items) visit(item);
  }
  demand(seen.size() <= bytes.size(), "each value has a byte of its own");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  // Of a size of its own, so that the sanitizer sees a read behind it.
  std::vector<char> const copy(data, data + size);
  std::string_view const bytes(copy.data(), copy.size());
  try {
    TensorPickle const pickle(bytes, "fuzz");
    look_at_all(pickle.root(), bytes);
  } catch (frugal::FormatError const& error) {
    demand(!error.fault().what.empty() && error.fault().where.starts_with("fuzz, byte "),
           "a damaged pickle is refused with what and where");
    demand(std::string_view(error.what()).size() < 1000, "an error is short");
  }
  return 0;
}
