// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/source/sample_set.hpp>
#include <frugal/data/sampling/permutation.hpp>
#include <frugal/data/shards/damage.hpp>
#include <frugal/data/shards/folder_set.hpp>
#include <frugal/data/shards/new_file.hpp>
#include <frugal/data/shards/npy.hpp>
#include <frugal/data/shards/record_layout.hpp>
#include <frugal/data/shards/shard_files.hpp>
#include <frugal/data/shards/tar_sample.hpp>
#include <frugal/data/shards/tar_shard_writer.hpp>
#include <frugal/data/shards/tar_stream.hpp>
#include <frugal/error.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

// Needs libarchive: FRUGAL_ARCHIVE=ON, and the target frugal::archive.
namespace frugal {

struct PackSettings {
  ShardLimits limits{};
  std::string prefix = "shard";
  OnDamage on_damage = OnDamage::Fail;  ///< of a sample that cannot be read, or has no valid name
  bool number = false;                  ///< keys are numbers, also where samples have keys
  std::optional<std::uint64_t> shuffle{};  ///< seed of a shuffled order
  /// Told from time to time: samples that are done, and all; 0 if that is not known.
  std::function<void(std::uint64_t, std::uint64_t)> progress{};
};

struct PackReport {
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;        ///< of the fields
  std::uint64_t shard_bytes = 0;  ///< of the files
  /// Samples whose key was that of the sample before them: it has their number behind it, as in
  /// "0007-000001234". Keys that are unique within each source meet where sources are joined or
  /// shuffled.
  std::uint64_t renamed = 0;
  std::vector<std::filesystem::path> shards;
  DamageLog skipped;  ///< what OnDamage::Skip has left out
};

/// Packs samples into tar shards of a new folder: all of them, or none. It writes to
/// `<folder>.partial`, which finish() renames; a crash leaves that folder, and no other.
///
/// Errors  those of TarShardWriter; SettingsError if the folder, or its partial one, exists.
class Packer {
 public:
  explicit Packer(std::filesystem::path folder, PackSettings settings = {})
      : folder_(std::move(folder)),
        settings_(std::move(settings)),
        writer_(folder_.partial(), settings_.limits, settings_.prefix) {}

  PackSettings const& settings() const { return settings_; }

  /// Adds what `make()` gives, a PackedSample. An error in it passes through, or is skipped; one
  /// of the disk passes through.
  template <class Make>
  void add(std::string const& name, Make&& make) {
    detail::WriteFailure disk;
    open_or_skip(settings_.on_damage, report_.skipped, name, [&] {
      PackedSample const sample = make();
      std::vector<ShardField> fields;
      for (PackedSample::Field const& each : sample.fields) {
        fields.push_back({each.extension, each.bytes});
      }
      std::string number = std::to_string(writer_.samples());
      number.insert(0, number.size() < 9 ? 9 - number.size() : 0, '0');
      std::string key = settings_.number || sample.key.empty() ? number : sample.key;
      bool const repeats = writer_.repeats(key);
      if (repeats) key += "-" + number;
      disk.guard([&] { writer_.add(key, fields); });
      report_.renamed += repeats ? 1 : 0;
    });
    disk.rethrow();
  }

  /// Calls `call()`; an error in it passes through, or is skipped. Returns whether it returned.
  template <class Call>
  bool try_to(std::string const& name, Call&& call) {
    return open_or_skip(settings_.on_damage, report_.skipped, name, std::forward<Call>(call));
  }

  PackReport finish() {
    writer_.finish();
    report_.samples = writer_.samples();
    report_.bytes = writer_.bytes();
    for (std::filesystem::path const& shard : writer_.shards()) {
      report_.shard_bytes += std::filesystem::file_size(shard);
      report_.shards.push_back(folder_.path() / shard.filename());
    }
    folder_.publish();
    return report_;
  }

 private:
  detail::NewFolder folder_;
  PackSettings settings_;
  PackReport report_;
  TarShardWriter writer_;
};

/// What is packed of a sample: fields with names of their own, or "txt" for text, or the file and
/// "cls" for a labelled file. Write an overload next to your sample's type for others.
inline PackedSample packed(TarSample const& sample) {
  PackedSample out{.key = sample.key, .fields = {}};
  for (std::size_t i = 0; i < sample.size(); ++i) {
    out.fields.push_back({std::string(sample.extension(i)), std::string(sample.bytes(i))});
  }
  return out;
}
inline PackedSample packed(LabelledFile sample) {
  std::string extension = sample.extension.empty() ? "bin" : std::move(sample.extension);
  return {.key = {},
          .fields = {{std::move(extension), std::move(sample.bytes)},
                     {"cls", std::to_string(sample.label)}}};
}
inline PackedSample packed(std::string text) {
  return {.key = {}, .fields = {{"txt", std::move(text)}}};
}
inline PackedSample packed(PackedSample sample) { return sample; }

/// Packs a set into tar shards of a new folder.
template <SampleSet S>
PackReport pack(S const& set, std::filesystem::path const& folder, PackSettings settings = {}) {
  Packer packer(folder, std::move(settings));
  std::uint64_t const size = set.size();
  auto const& seed = packer.settings().shuffle;
  Permutation const order(seed.value_or(0), 0, seed ? size : 0);
  for (std::uint64_t i = 0; i < size; ++i) {
    std::uint64_t const index = seed ? order(i) : i;
    packer.add(sample_name(set, index), [&] { return packed(read_sample(set, {.index = index})); });
    if (packer.settings().progress) packer.settings().progress(i + 1, size);
  }
  return packer.finish();
}

/// Packs the samples of tar files that are compressed, in their order.
inline PackReport pack_streams(std::vector<std::filesystem::path> const& paths,
                               std::filesystem::path const& folder, PackSettings settings = {}) {
  if (settings.shuffle) {
    throw SettingsError({.what = "compressed tar files cannot be shuffled as they are packed",
                         .where = paths.empty() ? "" : paths.front().string(),
                         .why = "they can be read in their own order alone",
                         .fix = "Pack them without shuffling, then pack the result with it."});
  }
  Packer packer(folder, std::move(settings));
  std::uint64_t done = 0;
  for (std::filesystem::path const& path : paths) {
    std::optional<TarStream> stream;
    packer.try_to(path.string(), [&] { stream.emplace(path); });
    for (std::optional<PackedSample> sample; stream; ++done) {
      std::string const name = path.string() + ", sample " + std::to_string(done);
      bool const read = packer.try_to(name, [&] { sample = stream->next(); });
      if (!read) continue;
      if (!sample) break;
      packer.add(name, [&] { return *std::move(sample); });
      if (packer.settings().progress) packer.settings().progress(done + 1, 0);
    }
  }
  return packer.finish();
}

namespace detail {

inline bool is_integer_field(std::string const& extension) {
  std::string const last = extension.substr(extension.rfind('.') + 1);
  return last == "cls" || last == "id" || last == "index";
}

/// A sample as a record of a shard, and the layout that such records have.
struct PackedRecord {
  RecordLayout layout;
  std::vector<std::string> fields;  ///< the bytes of each
};

/// Arrays of NumPy (.npy) and whole numbers (.cls, .id, .index) become tensors of the record, in
/// the order of the fields; one field of another kind becomes a record of any bytes.
inline PackedRecord packed_record(PackedSample const& sample, std::string const& where) {
  auto const refuse = [&](std::string why) {
    refuse_field(where, "a sample does not fit into a record", std::move(why));
  };
  std::vector<RecordField> fields;
  std::vector<std::string> parts;
  for (PackedSample::Field const& field : sample.fields) {
    std::string const of = where + ", field " + field.extension;
    if (field.extension == "npy" || field.extension.ends_with(".npy")) {
      NpyArray const array = read_npy(std::as_bytes(std::span(field.bytes)), of);
      fields.push_back({.name = field.extension, .dtype = array.dtype, .shape = array.shape});
      parts.emplace_back(reinterpret_cast<char const*>(array.bytes.data()), array.bytes.size());
    } else if (is_integer_field(field.extension)) {
      std::int64_t const number = integer_of(field.bytes, of);
      fields.push_back({.name = field.extension, .dtype = Dtype::i64});
      parts.emplace_back(reinterpret_cast<char const*>(&number), sizeof number);
    } else if (sample.fields.size() == 1) {
      return {.layout = {}, .fields = {field.bytes}};
    } else {
      refuse("the field " + field.extension +
             " is neither an array of NumPy nor a whole number, and is not the only one");
    }
  }
  std::string why;
  auto layout = RecordLayout::of(std::move(fields), why);
  if (!layout) refuse(std::move(why));
  return {.layout = *std::move(layout), .fields = std::move(parts)};
}

}  // namespace detail

/// Packs a set into record shards in a new folder, all of it or nothing, as `pack` does into
/// tar shards: for sets of arrays and numbers, or of one text or file each. `settings.limits` are
/// those of a shard; keys are not kept.
///
/// Errors  those of ShardFiles and of Packer; DataError for a sample that fits no record, or whose
///         tensors are not those of the first, unless OnDamage::Skip leaves it out.
template <SampleSet S>
PackReport pack_records(S const& set, std::filesystem::path const& folder,
                        PackSettings const& settings = {}) {
  PackReport report;
  detail::NewFolder target(folder);
  ShardFiles files(target.partial(), {.records_per_shard = settings.limits.samples,
                                      .bytes_per_shard = settings.limits.bytes});
  std::uint64_t const size = set.size();
  Permutation const order(settings.shuffle.value_or(0), 0, settings.shuffle ? size : 0);
  for (std::uint64_t i = 0; i < size; ++i) {
    std::uint64_t const index = settings.shuffle ? order(i) : i;
    std::string const name = sample_name(set, index);
    detail::WriteFailure disk;
    open_or_skip(settings.on_damage, report.skipped, name, [&] {
      auto record = detail::packed_record(packed(read_sample(set, {.index = index})), name);
      if (files.records() == 0) files.set_layout(record.layout);
      if (record.layout != files.layout()) {
        detail::refuse_field(
            name, "a sample has other tensors than the first",
            "it is " + record.layout.text() + ", and the first was " + files.layout().text());
      }
      std::vector<std::span<std::byte const>> fields;
      for (std::string const& field : record.fields) {
        fields.push_back(std::as_bytes(std::span(field)));
        report.bytes += field.size();
      }
      disk.guard([&] { files.add(fields); });
    });
    disk.rethrow();
    if (settings.progress) settings.progress(i + 1, size);
  }
  ShardList const list = files.close();
  report.samples = files.records();
  for (ShardList::Shard const& shard : list.shards) {
    report.shard_bytes += shard.bytes;
    report.shards.push_back(target.path() / shard.name);
  }
  target.publish();
  return report;
}

}  // namespace frugal
