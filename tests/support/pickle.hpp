// SPDX-License-Identifier: Apache-2.0
// Pickles, opcode by opcode: a test may put into them what Python never would.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace frugal_test::support {

/// A pickle of protocol 2.
class Pickle {
 public:
  Pickle& raw(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
  }
  Pickle& text(std::string_view text) { return raw("X").number(text.size()).raw(text); }
  Pickle& integer(std::int32_t value) { return raw("J").number(static_cast<std::uint32_t>(value)); }
  Pickle& global(std::string_view module, std::string_view name) {
    return raw("c").raw(module).raw("\n").raw(name).raw("\n");
  }
  Pickle& integers(std::vector<std::int32_t> const& values) {
    raw("(");
    for (std::int32_t const each : values) integer(each);
    return raw("t");
  }
  /// A tensor of a storage of so many elements, of a type such as "Float".
  Pickle& tensor(std::string const& key, std::string const& type, std::int32_t elements,
                 std::int32_t offset, std::vector<std::int32_t> const& sizes,
                 std::vector<std::int32_t> const& strides) {
    global("torch._utils", "_rebuild_tensor_v2").raw("((").text("storage");
    global("torch", type + "Storage").text(key).text("cuda:0").integer(elements).raw("tQ");
    integer(offset).integers(sizes).integers(strides).raw("\x89");
    return global("collections", "OrderedDict").raw(")RtR");
  }
  /// A state dict: an OrderedDict that is filled with what `fill` adds.
  template <class Fill>
  Pickle& dict(Fill const& fill) {
    global("collections", "OrderedDict").raw(")R(");
    fill(*this);
    return raw("u");
  }
  std::string done() { return bytes_ + "."; }

 private:
  Pickle& number(std::size_t value) {
    for (int shift = 0; shift < 32; shift += 8) bytes_ += static_cast<char>(value >> shift & 255U);
    return *this;
  }

  std::string bytes_ = "\x80\x02";
};

}  // namespace frugal_test::support
