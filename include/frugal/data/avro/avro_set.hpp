// SPDX-License-Identifier: Apache-2.0
// needs: avro
#pragma once

#include <frugal/core/source/data_identity.hpp>
#include <frugal/data/avro/container.hpp>
#include <frugal/data/avro/schema.hpp>
#include <frugal/data/file_identity.hpp>
#include <frugal/data/shards/damage.hpp>
#include <frugal/data/tables/files.hpp>
#include <frugal/data/tables/group_cache.hpp>
#include <frugal/data/tables/row.hpp>
#include <frugal/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal::detail {

/// Gives the leaves of a record their columns: those of `wanted`, in its order, or all of them.
/// Fields of a record within the record have names with a dot, "box.width". Returns the names.
///
/// Errors  SettingsError for a column that does not exist, or whose type no cell holds.
inline std::vector<std::string> choose_columns(AvroType& record,
                                               std::vector<std::string> const& wanted,
                                               std::string const& where) {
  using Kind = AvroType::Kind;
  std::vector<std::pair<std::string, AvroType*>> leaves;
  auto const collect = [&](auto const& self, AvroType& type, std::string const& prefix) -> void {
    for (AvroType& field : type.parts) {
      if (field.kind == Kind::record) {
        self(self, field, prefix + field.name + '.');
      } else {
        leaves.emplace_back(prefix + field.name, &field);
      }
    }
  };
  collect(collect, record, "");
  auto const one_cell = [](auto const& self, AvroType const& type) -> bool {
    switch (type.kind) {
      case Kind::map:
      case Kind::record:
        return false;
      case Kind::list:
        return type.parts[0].kind != Kind::null && type.parts[0].kind != Kind::list &&
               type.parts[0].kind != Kind::either && self(self, type.parts[0]);
      case Kind::either:
        return std::all_of(type.parts.begin(), type.parts.end(),
                           [&](AvroType const& each) { return self(self, each); });
      default:
        return true;
    }
  };
  std::vector<std::string> names;
  auto const choose = [&](std::pair<std::string, AvroType*> const& leaf) {
    if (!one_cell(one_cell, *leaf.second)) {
      throw SettingsError({.what = "a column's type is not read",
                           .where = where + ", column " + leaf.first,
                           .why = "cells are numbers, booleans, texts, bytes, lists of these, and "
                                  "unions of those; no map, and no record or union in a list",
                           .fix = "Leave the column out by naming the others in `columns`."});
    }
    leaf.second->column = static_cast<std::ptrdiff_t>(names.size());
    names.push_back(leaf.first);
  };
  if (wanted.empty()) {
    for (auto const& leaf : leaves) choose(leaf);
  }
  for (std::string const& column : wanted) {
    auto const found = std::find_if(leaves.begin(), leaves.end(),
                                    [&](auto const& leaf) { return leaf.first == column; });
    if (found == leaves.end() || found->second->column >= 0) {
      std::string all;
      for (auto const& leaf : leaves) all += (all.empty() ? "" : ", ") + leaf.first;
      throw SettingsError({.what = found == leaves.end() ? "there is no column " + column
                                                         : "a column is named twice: " + column,
                           .where = where,
                           .why = "the columns are " + all,
                           .fix = "Name each of those that you read once."});
    }
    choose(*found);
  }
  return names;
}

}  // namespace frugal::detail

namespace frugal {

/// How Avro files are read.
struct AvroSettings {
  std::vector<std::string> columns = {};   ///< the columns to read; empty: all
  std::uint64_t cache_bytes = 256U << 20;  ///< of decompressed blocks, shared by all threads
  OnDamage on_damage = OnDamage::Fail;     ///< for files that are missing, truncated or damaged
  std::uint64_t most_block_bytes = 256U << 20;  ///< what a block may grow to
};

/// The rows of Avro container files, a SampleSet: `get(index)` is a Row, read through the block
/// that holds it. Copies share the files and the cache.
///
/// Opening reads the headers of all blocks, and no rows. A block is decompressed in the thread that
/// asks for one of its rows first, and a row is decoded when it is asked for. Reads the codecs
/// null, deflate and zstandard.
///
/// Columns  the leaves of the schema; fields of a record within a record have names with a dot.
///          Integers are int64, floats double; strings, bytes, fixed and enums text; arrays lists.
///          A union gives the cell of its branch, a logical type the one that it is stored as.
/// Errors   opening: DataError for a file that is missing, damaged, or has another schema than the
///          first, and for one that is cut off: but with OnDamage::Skip its whole blocks are read.
///          SettingsError for a column that does not exist, or whose type no cell holds;
///          EmptySourceError for no row. get(): DataError with file, block and byte; ChangedError
///          for a file that has changed. IoError for one that cannot be read now, never skipped.
class AvroSet {
 public:
  /// Files, in this order; a folder stands for its *.avro, by name.
  explicit AvroSet(std::vector<std::filesystem::path> const& paths, AvroSettings settings = {})
      : state_(std::make_shared<State>(settings)) {
    // What zlib counts in 32 bits.
    state_->settings.most_block_bytes =
        std::min<std::uint64_t>(settings.most_block_bytes, std::uint64_t{1} << 31);
    for (auto const& path : detail::table_files(paths, ".avro")) {
      open_or_skip(settings.on_damage, state_->damage, path.string(), [&] { add(path); });
    }
    if (size() == 0) {
      throw EmptySourceError({.what = "the Avro files have no rows",
                              .where = paths.front().string(),
                              .why = state_->damage.text(),
                              .fix = "Give at least one row."});
    }
  }
  explicit AvroSet(std::filesystem::path const& path, AvroSettings settings = {})
      : AvroSet(std::vector{path}, std::move(settings)) {}

  std::uint64_t size() const { return state_->index.size(); }

  Row get(std::uint64_t index) const {
    std::size_t const of = state_->index.group(index);
    Block const& block = state_->blocks[of];
    File const& file = state_->files[block.file];
    std::uint64_t const row = index - state_->index.first(of);
    auto const rows = decompressed(of);
    return Row(file.head, block.first + row,
               rows->cells(row, file.type, file.head->columns.size()));
  }

  std::string name(std::uint64_t index) const {
    std::size_t const of = state_->index.group(index);
    Block const& block = state_->blocks[of];
    return state_->files[block.file].head->source + ", row " +
           std::to_string(block.first + index - state_->index.first(of));
  }

  /// Paths with sizes and times, and the columns.
  std::string identity() const { return state_->identity; }

  /// Wherever the files lie, and whenever they were fetched; and the columns.
  void identify(DataIdentity& to) const {
    detail::FilesIdentity files(state_->files.size());
    for (File const& file : state_->files) files.add(file.input.name);
    files.identify(to);
    std::string names;
    for (std::string const& column : columns()) names += (names.empty() ? "" : ", ") + column;
    to.add("columns", names);
  }

  std::vector<std::string> const& columns() const { return state_->files.front().head->columns; }
  /// The unit of a column of times, by its logical type.
  TimeUnit unit(std::string_view column) const {
    return state_->files.front().head->format(column).unit;
  }
  /// Rows of each block, for orders that visit them one after the other.
  std::vector<std::uint64_t> shard_sizes() const { return state_->index.sizes(); }
  /// The files that were skipped, or read in part.
  DamageLog const& damage() const { return state_->damage; }
  /// How often a block was decompressed.
  std::uint64_t decoded() const { return state_->cache.decoded(); }
  /// Blocks that have rows.
  std::uint64_t groups() const { return state_->blocks.size(); }
  /// What to change if blocks are decompressed again and again, for an order that reads from
  /// `at_once` of them at a time; empty otherwise.
  std::string group_warning(std::uint64_t at_once) const { return state_->cache.warning(at_once); }
  /// The schema of the first file, in JSON.
  std::string const& schema() const { return state_->files.front().header.schema; }

 private:
  using Cache = detail::GroupCache<detail::AvroRows>;

  struct File {
    detail::AvroInput input;
    detail::AvroHeader header;
    AvroType type;
    std::shared_ptr<RowHead const> head;
  };

  struct Block {
    std::size_t file;
    detail::AvroBlock place;
    std::uint64_t number;  ///< in the file
    std::uint64_t first;   ///< row in the file
  };

  struct State {
    explicit State(AvroSettings const& settings_)
        : settings(settings_), cache(settings_.cache_bytes) {}

    AvroSettings settings;
    std::vector<File> files;
    std::vector<Block> blocks;
    detail::GroupIndex index;
    DamageLog damage;
    std::string identity;
    Cache cache;
  };

  void add(std::filesystem::path const& path) {
    File file{.input = detail::avro_file(path), .header = {}, .type = {}, .head = {}};
    std::string const& name = file.input.name;
    file.header = detail::avro_header(file.input);
    auto& files = state_->files;
    if (!files.empty() && file.header.schema != files.front().header.schema) {
      throw DataError({.what = "two files of a set have other schemas",
                       .where = name,
                       .why = "it differs from " + files.front().input.name,
                       .fix = "Write both with one schema."});
    }
    file.type = avro_schema(file.header.schema, name);
    if (file.type.empty()) {
      throw DataError({.what = "the rows of the file have no bytes",
                       .where = name,
                       .why = "its schema has nothing but nulls",
                       .fix = "Write a column that has values."});
    }
    RowHead head{.source = name,
                 .columns = detail::choose_columns(file.type, state_->settings.columns, name)};
    detail::AvroUnits const units(file.header.schema);
    for (std::string const& column : head.columns) units.require_no_decimal(column, name);
    head.formats.resize(head.columns.size());
    detail::avro_formats(file.type, units, head.columns, head.formats);
    file.head = std::make_shared<RowHead const>(std::move(head));
    std::vector<detail::AvroBlock> blocks;
    try {
      detail::avro_blocks(file.input, file.header, blocks);
    } catch (DataError const& error) {
      if (state_->settings.on_damage == OnDamage::Fail || blocks.empty()) throw;
      state_->damage.add(name + ", after block " + std::to_string(blocks.size() - 1),
                         error.fault().what);
    }
    std::uint64_t first = 0;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      state_->blocks.push_back({files.size(), blocks[i], i, first});
      state_->index.add(blocks[i].rows);
      first += blocks[i].rows;
    }
    state_->identity += detail::file_identity(path) + " [";
    for (std::string const& column : file.head->columns) state_->identity += column + ' ';
    state_->identity += "]\n";
    files.push_back(std::move(file));
  }

  std::shared_ptr<detail::AvroRows const> decompressed(std::size_t of) const {
    return state_->cache.get(of, [&] {
      Block const& block = state_->blocks[of];
      File const& file = state_->files[block.file];
      std::string const where = file.input.name + ", block " + std::to_string(block.number);
      // Before memory is allocated for what the file claims.
      if (block.place.bytes > detail::most_packed(state_->settings.most_block_bytes)) {
        detail::too_large(where, state_->settings.most_block_bytes);
      }
      std::string packed =
          file.input.read(block.place.offset, static_cast<std::size_t>(block.place.bytes));
      auto rows = std::make_shared<detail::AvroRows const>(
          detail::decompressed(file.header.codec, std::move(packed),
                               state_->settings.most_block_bytes, where),
          block.place.rows, file.type, where);
      return typename Cache::Made{rows, rows->bytes()};
    });
  }

  std::shared_ptr<State> state_;
};

}  // namespace frugal
