// SPDX-License-Identifier: Apache-2.0
// needs: avro
// Reads the input as an Avro container file: its header, schema, blocks and every row. Whatever is
// refused must be refused with a typed error.
#include <frugal/data/avro/avro_set.hpp>
#include <frugal/data/avro/container.hpp>
#include <frugal/data/avro/schema.hpp>
#include <frugal/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// libavro 1.11 keeps parts of a schema that it refuses. The leak is not frugal's to close, and
/// would end every run at the first such schema; leaks of frugal's own have no libavro in their
/// stack.
extern "C" char const* __lsan_default_suppressions() { return "leak:libavro\n"; }

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  namespace detail = frugal::detail;
  std::string_view const bytes(reinterpret_cast<char const*>(data), size);
  detail::AvroInput const input{
      .name = "input", .size = size, .read = [bytes](std::uint64_t offset, std::size_t wanted) {
        return std::string(bytes.substr(static_cast<std::size_t>(offset), wanted));
      }};
  try {
    auto const header = detail::avro_header(input);
    frugal::AvroType type = frugal::avro_schema(header.schema, "input");
    auto const columns = detail::choose_columns(type, {}, "input");
    if (type.empty()) return 0;
    std::vector<detail::AvroBlock> blocks;
    try {
      detail::avro_blocks(input, header, blocks);
    } catch (frugal::DataError const&) {  // the blocks before are read, as with OnDamage::Skip
    }
    for (detail::AvroBlock const& block : blocks) {
      detail::AvroRows const rows(
          detail::decompressed(header.codec,
                               input.read(block.offset, static_cast<std::size_t>(block.bytes)),
                               1U << 20, "block"),
          block.rows, type, "block");
      for (std::uint64_t row = 0; row < rows.rows(); ++row) {
        if (rows.cells(row, type, columns.size()).size() != columns.size()) __builtin_trap();
      }
    }
  } catch (frugal::DataError const&) {
  } catch (frugal::SettingsError const&) {
  }
  return 0;
}
