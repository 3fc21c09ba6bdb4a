// SPDX-License-Identifier: Apache-2.0
// needs: arrow
#pragma once

#include <frugal/core/source/data_identity.hpp>
#include <frugal/data/arrow/parquet_file.hpp>
#include <frugal/data/arrow/table.hpp>
#include <frugal/data/file_identity.hpp>
#include <frugal/data/shards/damage.hpp>
#include <frugal/data/tables/files.hpp>
#include <frugal/data/tables/group_cache.hpp>
#include <frugal/data/tables/row.hpp>
#include <frugal/error.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal {

/// How Parquet files are read.
struct ParquetSettings {
  std::vector<std::string> columns = {};   ///< the columns to read; empty: all
  std::uint64_t cache_bytes = 256U << 20;  ///< of decoded row groups, shared by all threads
  OnDamage on_damage = OnDamage::Fail;     ///< for files that are missing, truncated or damaged
  bool verify = true;                      ///< check the pages' checksums, where a file has them
  bool threads = false;                    ///< decode the columns in threads of Arrow's own
  TimeUnit int96_unit = TimeUnit::nanosecond;  ///< of the times of old writers; the others say it
};

/// The rows of Parquet files, a SampleSet: `get(index)` is a Row, read through the row group that
/// holds it. Copies share the files and the cache.
///
/// Lever   idle device: only the columns that are used are read and decoded, a row group once.
/// Cost    a row group is decoded in the thread that asks for one of its rows first. An order that
///         visits row groups one after the other (`shard_sizes()`) decodes each once per epoch; a
///         shuffle over all rows decodes one for nearly every row, unless the cache holds them all.
/// Errors  opening: DataError for a file that is missing, truncated, damaged, or has other columns
///         than the first (or skipped and counted in damage()); SettingsError for a column that
///         does not exist, or whose type no cell holds; EmptySourceError for no row at all. get():
///         DataError with file and row group for a damaged page. IoError for a file that cannot be
///         read now, and ChangedError for one that has changed; neither is skipped.
class ParquetSet {
 public:
  /// Files, in this order; a folder stands for its *.parquet, by name.
  explicit ParquetSet(std::vector<std::filesystem::path> const& paths,
                      ParquetSettings settings = {})
      : state_(std::make_shared<State>(settings.cache_bytes, settings.threads)) {
    for (auto const& path : detail::table_files(paths, ".parquet")) {
      open_or_skip(settings.on_damage, state_->damage, path.string(), [&] { add(path, settings); });
    }
    if (size() == 0) {
      throw EmptySourceError({.what = "the Parquet files have no rows",
                              .where = paths.front().string(),
                              .why = state_->damage.text(),
                              .fix = "Give at least one row."});
    }
  }
  explicit ParquetSet(std::filesystem::path const& path, ParquetSettings settings = {})
      : ParquetSet(std::vector{path}, std::move(settings)) {}

  std::uint64_t size() const { return state_->index.size(); }

  Row get(std::uint64_t index) const {
    std::size_t const group = state_->index.group(index);
    return this->group(group)->row(index - state_->index.first(group));
  }

  std::string name(std::uint64_t index) const {
    std::size_t const of = state_->index.group(index);
    Group const& group = state_->groups[of];
    return state_->files[group.file].name() + ", row " +
           std::to_string(group.first + index - state_->index.first(of));
  }

  /// Paths with sizes and times, and the columns.
  std::string identity() const { return state_->identity; }

  /// Wherever the files lie, and whenever they were fetched; and the columns.
  void identify(DataIdentity& to) const {
    detail::FilesIdentity files(state_->files.size());
    for (detail::ParquetFile const& file : state_->files) files.add(file.name());
    files.identify(to);
    to.add("columns", state_->files.front().schema_text());
  }

  std::vector<std::string> const& columns() const { return state_->files.front().columns(); }
  /// The unit of a column of times.
  TimeUnit unit(std::string_view column) const {
    return state_->heads.front()->format(column).unit;
  }
  /// Rows of each row group, for orders that visit them one after the other.
  std::vector<std::uint64_t> shard_sizes() const { return state_->index.sizes(); }
  /// The files that were skipped.
  DamageLog const& damage() const { return state_->damage; }
  /// How often a row group was decoded: with an order that fits, once per epoch each.
  std::uint64_t decoded() const { return state_->cache.decoded(); }

  /// Row groups that have rows.
  std::uint64_t groups() const { return state_->groups.size(); }
  /// What to change if row groups are decoded again and again, for an order that reads from
  /// `at_once` of them at a time; empty otherwise.
  std::string group_warning(std::uint64_t at_once) const { return state_->cache.warning(at_once); }
  /// Bytes that a decoded row group takes at least, by the footer.
  std::uint64_t group_bytes(std::size_t group) const {
    Group const& which = state_->groups[group];
    return state_->files[which.file].bytes(which.group);
  }

  /// A decoded row group.
  std::shared_ptr<detail::ArrowTable const> group(std::size_t group) const {
    return state_->cache.get(group, [&] {
      auto table = std::make_shared<detail::ArrowTable const>(decode(group));
      return typename Cache::Made{table, table->bytes()};
    });
  }

  /// Decodes without the cache.
  detail::ArrowTable decode(std::size_t group) const {
    Group const& which = state_->groups[group];
    return {*state_->files[which.file].read(which.group, state_->threads),
            state_->heads[which.file], which.first};
  }

 private:
  using Cache = detail::GroupCache<detail::ArrowTable>;

  struct Group {
    std::size_t file;
    int group;            ///< in the file
    std::uint64_t first;  ///< row in the file
  };

  struct State {
    State(std::uint64_t cache_bytes, bool threads_) : threads(threads_), cache(cache_bytes) {}

    bool const threads;
    std::vector<detail::ParquetFile> files;
    std::vector<std::shared_ptr<RowHead const>> heads;
    std::vector<Group> groups;
    detail::GroupIndex index;
    DamageLog damage;
    std::string identity;
    Cache cache;
  };

  [[noreturn]] static void other_columns(std::string where, std::string why) {
    throw DataError({.what = "two files of a set have other columns",
                     .where = std::move(where),
                     .why = std::move(why),
                     .fix = "Write both with one schema, or name the columns that they share."});
  }

  /// The first file says which columns there are.
  detail::ParquetFile open(std::filesystem::path const& path,
                           ParquetSettings const& settings) const {
    auto const& files = state_->files;
    if (files.empty()) return {path, settings.columns, settings.verify, settings.int96_unit};
    try {
      return {path, files.front().columns(), settings.verify, settings.int96_unit};
    } catch (SettingsError const& error) {  // the settings are right: the first file has them
      other_columns(path.string(), error.fault().what + ": " + error.fault().why);
    }
  }

  void add(std::filesystem::path const& path, ParquetSettings const& settings) {
    auto& files = state_->files;
    detail::ParquetFile file = open(path, settings);
    if (!files.empty() && file.schema_text() != files.front().schema_text()) {
      other_columns(file.name(), "it has " + file.schema_text() + "and " + files.front().name() +
                                     " has " + files.front().schema_text());
    }
    for (std::string const& column : file.columns()) {
      detail::require_cells(file.field(column), file.name());
    }
    std::vector<std::uint64_t> rows;  // of all groups, before any of them counts
    for (int group = 0; group < file.groups(); ++group) rows.push_back(file.rows(group));
    std::uint64_t first = 0;
    for (std::size_t group = 0; group < rows.size(); ++group) {
      if (rows[group] == 0) continue;
      state_->groups.push_back({files.size(), static_cast<int>(group), first});
      state_->index.add(rows[group]);
      first += rows[group];
    }
    RowHead head{.source = file.name(), .columns = file.columns()};
    for (std::string const& column : head.columns) {
      head.formats.push_back(detail::arrow_format(*file.field(column).type()));
    }
    state_->heads.push_back(std::make_shared<RowHead const>(std::move(head)));
    state_->identity += detail::file_identity(path) + " [" + file.schema_text() + "]\n";
    files.push_back(std::move(file));
  }

  std::shared_ptr<State> state_;
};

}  // namespace frugal
