// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: archive
// takes: arrow avro
// Turns data into shards once: tar shards in WebDataset's layout, which frugal::TarSet and Python's
// webdataset read, or record shards (--as records), for RecordSet. The target folder is
// complete or not there, and nothing is overwritten.
//
//   frugal_pack --to shards/train tar old-{000..146}.tar          shards again, or compressed ones
//   frugal_pack --to shards/train folder images/train             a folder for each class
//   frugal_pack --to shards/train lines corpus.txt                or paragraphs, or files
//   frugal_pack --to shards/train idx images.gz labels.gz         IDX: images, and perhaps labels
//   frugal_pack --to shards/train parquet part.parquet --field image=jpg --field label=cls
//
// Parquet, CSV and JSONL are there if it is built with Arrow, and Avro with libavro. A row becomes
// one field "json", or the columns that --field names.
#include <frugal/data/idx.hpp>
#include <frugal/data/shards/npy.hpp>
#include <frugal/data/shards/pack.hpp>
#include <frugal/data/shards/tar_set.hpp>
#include <frugal/data/shards/text_lines.hpp>

#ifdef FRUGAL_HAS_ARROW
#include <frugal/data/arrow/csv.hpp>
#include <frugal/data/arrow/jsonl.hpp>
#include <frugal/data/arrow/parquet_set.hpp>
#endif
#ifdef FRUGAL_HAS_AVRO
#include <frugal/data/avro/avro_set.hpp>
#endif
#if defined(FRUGAL_HAS_ARROW) || defined(FRUGAL_HAS_AVRO)
#include <frugal/data/tables/pack_row.hpp>
#endif

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

namespace fr = frugal;

namespace {

/// The slices of an IDX file along its first dimension, as arrays of NumPy, with the labels of
/// another.
class IdxSlices {
 public:
  explicit IdxSlices(std::vector<std::string> const& paths)
      : images_(fr::read_idx(std::filesystem::path(paths.at(0)))) {
    if (paths.size() > 2) throw wrong("more than two files", "idx takes images, and labels");
    if (paths.size() < 2) return;
    labels_ = fr::read_idx(std::filesystem::path(paths[1]));
    bool const bytes = labels_->type == fr::IdxType::uint8 && labels_->shape.size() == 1;
    if (!bytes || labels_->shape[0] != images_.shape[0]) {
      throw wrong("labels that do not fit", "there is not one byte for each image");
    }
  }

  std::uint64_t size() const { return images_.shape[0]; }

  fr::PackedSample get(std::uint64_t index) const {
    std::vector<std::uint64_t> const shape(images_.shape.begin() + 1, images_.shape.end());
    std::uint64_t const bytes = images_.size / size();
    std::string array = fr::npy_header(type_of(images_.type), shape);
    array.append(reinterpret_cast<char const*>(images_.data.get()) + index * bytes, bytes);
    fr::PackedSample out{.key = {}, .fields = {{"npy", std::move(array)}}};
    if (labels_) {
      auto const label = std::to_integer<unsigned>(labels_->data[index]);
      out.fields.push_back({"cls", std::to_string(label)});
    }
    return out;
  }

 private:
  static fr::DataError wrong(std::string what, std::string why) {
    return fr::DataError({.what = std::move(what),
                          .where = "idx",
                          .why = std::move(why),
                          .fix = "Give the images, and then the labels."});
  }
  static fr::Dtype type_of(fr::IdxType type) {
    switch (type) {
      case fr::IdxType::int8:
        return fr::Dtype::i8;
      case fr::IdxType::int16:
        return fr::Dtype::i16;
      case fr::IdxType::int32:
        return fr::Dtype::i32;
      case fr::IdxType::float32:
        return fr::Dtype::f32;
      case fr::IdxType::float64:
        return fr::Dtype::f64;
      case fr::IdxType::uint8:
        break;
    }
    return fr::Dtype::u8;
  }

  fr::IdxArray images_;
  std::optional<fr::IdxArray> labels_;
};

/// What is made: tar shards, or frugal's own.
struct Target {
  std::filesystem::path folder;
  bool records = false;
};

template <class Set>
fr::PackReport pack_to(Set const& set, Target const& to, fr::PackSettings settings) {
  if (to.records) return fr::pack_records(set, to.folder, settings);
  return fr::pack(set, to.folder, std::move(settings));
}

/// A line on the terminal, at each percent, or each thousand samples where their number is not
/// known.
class ProgressLine {
 public:
  void operator()(std::uint64_t done, std::uint64_t all) {
    if (::isatty(STDERR_FILENO) == 0) return;
    std::uint64_t const mark = all != 0 ? done * 100 / all : done / 1000;
    if (mark == last_) return;
    last_ = mark;
    std::cerr << '\r' << done;
    if (all != 0) std::cerr << " of " << all << " samples, " << mark << " %";
    std::cerr << std::flush;
    if (done == all) std::cerr << '\n';
  }

 private:
  std::uint64_t last_ = 0;
};

/// By its content as well: a file of any name may be compressed, and TarSet sends such here. One
/// that cannot be read is left to the reader.
bool compressed(std::filesystem::path const& path) {
  try {
    return path.extension() != ".tar" || fr::is_compressed(path);
  } catch (fr::StoreError const&) {
    return false;
  }
}

fr::PackReport pack_tar(std::vector<std::string> const& sources, Target const& to,
                        fr::PackSettings settings) {
  std::vector<std::filesystem::path> shards;
  for (std::string const& source : sources) {
    for (auto const& each :
         fr::shard_paths(source, {".tar", ".tar.gz", ".tgz", ".tar.zst", ".tar.xz", ".tar.bz2"})) {
      shards.push_back(each);
    }
  }
  if (std::any_of(shards.begin(), shards.end(), compressed)) {
    if (to.records) {
      throw fr::SettingsError({.what = "compressed tar files cannot become records at once",
                               .where = shards.front().string(),
                               .why = "they are read in their order alone",
                               .fix = "Pack them into tar shards, and those into records."});
    }
    return fr::pack_streams(shards, to.folder, std::move(settings));
  }
  fr::TarSet const set(shards, {.on_damage = settings.on_damage, .keep_index = false});
  fr::PackReport report = pack_to(set, to, std::move(settings));
  report.skipped.add(set.damage());
  return report;
}

/// Which formats this program was built with.
std::vector<std::string> formats() {
  std::vector<std::string> all{"tar", "folder", "lines", "paragraphs", "files", "idx"};
#ifdef FRUGAL_HAS_ARROW
  all.insert(all.end(), {"parquet", "csv", "jsonl"});
#endif
#ifdef FRUGAL_HAS_AVRO
  all.emplace_back("avro");
#endif
  return all;
}

#if defined(FRUGAL_HAS_ARROW) || defined(FRUGAL_HAS_AVRO)
using Fields = std::vector<fr::PackRow::Field>;

template <class Set>
fr::PackReport pack_rows(Set const& set, Target const& to, fr::PackSettings settings,
                         Fields const& fields) {
  struct Rows {
    Set const& set;
    fr::PackRow row;
    std::uint64_t size() const { return set.size(); }
    fr::PackedSample get(std::uint64_t index) const { return row(set.get(index)); }
    std::string name(std::uint64_t index) const { return set.name(index); }
  };
  return pack_to(Rows{set, {fields}}, to, std::move(settings));
}

[[maybe_unused]] std::filesystem::path only(std::vector<std::filesystem::path> const& paths) {
  if (paths.size() == 1) return paths[0];
  throw fr::SettingsError(
      {.what = "more than one file",
       .where = paths.at(1).string(),
       .why = "a CSV or JSONL file is read into memory, one at a time",
       .fix = "Pack each into a folder of its own, or turn them into Parquet."});
}

/// Nothing if the format is no table.
std::optional<fr::PackReport> pack_table(std::string const& format,
                                         std::vector<std::string> const& sources, Target const& to,
                                         fr::PackSettings const& settings, Fields const& fields) {
  std::vector<std::filesystem::path> const paths(sources.begin(), sources.end());
#ifdef FRUGAL_HAS_ARROW
  if (format == "parquet") {
    fr::ParquetSet const set(paths, {.on_damage = settings.on_damage});
    fr::PackReport report = pack_rows(set, to, settings, fields);
    report.skipped.add(set.damage());
    return report;
  }
  if (format == "csv") return pack_rows(fr::read_csv(only(paths)), to, settings, fields);
  if (format == "jsonl") return pack_rows(fr::read_jsonl(only(paths)), to, settings, fields);
#endif
#ifdef FRUGAL_HAS_AVRO
  if (format == "avro") {
    fr::AvroSet const set(paths, {.on_damage = settings.on_damage});
    fr::PackReport report = pack_rows(set, to, settings, fields);
    report.skipped.add(set.damage());
    return report;
  }
#endif
  return std::nullopt;
}

/// "image=jpg".
Fields fields_of(std::vector<std::string> const& texts) {
  Fields fields;
  for (std::string const& text : texts) {
    std::size_t const at = text.find('=');
    if (at == std::string::npos) {
      throw fr::SettingsError({.what = "a field without an extension",
                               .where = "--field " + text,
                               .why = "",
                               .fix = "Write COLUMN=EXTENSION, as in image=jpg."});
    }
    fields.push_back({text.substr(0, at), text.substr(at + 1)});
  }
  return fields;
}
#endif

fr::PackReport run(std::string const& format, std::vector<std::string> const& sources,
                   Target const& to, fr::PackSettings settings,
                   [[maybe_unused]] std::vector<std::string> const& fields) {
#if defined(FRUGAL_HAS_ARROW) || defined(FRUGAL_HAS_AVRO)
  if (auto report = pack_table(format, sources, to, settings, fields_of(fields))) return *report;
#endif
  if (format == "tar") return pack_tar(sources, to, std::move(settings));
  if (format == "idx") return pack_to(IdxSlices(sources), to, std::move(settings));
  if (format == "folder") {
    if (sources.size() > 1) {
      throw fr::SettingsError({.what = "more than one folder of classes",
                               .where = sources[1],
                               .why = "labels are the places of the classes in one folder",
                               .fix = "Pack each into a folder of its own, or join them."});
    }
    fr::FolderSet const set(sources.at(0));
    for (std::size_t i = 0; i < set.classes().size(); ++i) {
      std::cout << "class " << i << ": " << set.classes()[i] << '\n';
    }
    return pack_to(set, to, std::move(settings));
  }
  fr::TextUnit const unit = format == "lines"        ? fr::TextUnit::line
                            : format == "paragraphs" ? fr::TextUnit::paragraph
                                                     : fr::TextUnit::file;
  fr::TextLines const set(std::vector<std::filesystem::path>(sources.begin(), sources.end()),
                          {.unit = unit, .on_damage = settings.on_damage});
  fr::PackReport report = pack_to(set, to, std::move(settings));
  report.skipped.add(set.damage());
  return report;
}

double mib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

}  // namespace

int main(int argc, char** argv) {
  std::string format, to, as = "tar";
  std::vector<std::string> sources, fields;
  std::uint64_t seed = 0;
  bool skip = false;
  fr::PackSettings settings;
  settings.progress = ProgressLine();

  CLI::App app("Turns data into shards: tar files for frugal and webdataset, or record shards.");
  app.add_option("format", format, "what the sources are")
      ->required()
      ->check(CLI::IsMember(formats()));
  app.add_option("sources", sources, "files, folders or patterns such as train-{000..146}.tar")
      ->required();
  app.add_option("--to", to, "the folder to make")->required();
  app.add_option("--as", as, "tar shards, or records: record shards")
      ->check(CLI::IsMember({"tar", "records"}))
      ->capture_default_str();
  app.add_option("--prefix", settings.prefix, "of the shards' names")->capture_default_str();
  app.add_option("--shard-samples", settings.limits.samples, "samples of a shard, at most")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--shard-bytes", settings.limits.bytes, "bytes of a shard, at most")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--field", fields, "COLUMN=EXTENSION: a table's column that becomes a field")
      ->allow_extra_args(false);
  auto* const shuffle = app.add_option("--shuffle", seed, "shuffle the samples with this seed");
  app.add_flag("--number", settings.number, "number the samples, also where they have keys");
  app.add_flag("--skip-damage", skip, "leave out what cannot be read, and report it");
  CLI11_PARSE(app, argc, argv);

  try {
    if (shuffle->count() != 0) settings.shuffle = seed;
    if (skip) settings.on_damage = fr::OnDamage::Skip;
    fr::PackReport const report =
        run(format, sources, {to, as == "records"}, std::move(settings), fields);
    std::cout << std::fixed << std::setprecision(1) << report.samples << " samples, "
              << mib(report.bytes) << " MiB, in " << report.shards.size() << " shards of "
              << mib(report.shard_bytes) << " MiB\n";
    if (report.renamed != 0) {
      std::cout << report.renamed << " had the key of the sample before, and have their number "
                << "behind it\n";
    }
    for (auto const& entry : report.skipped.entries()) {
      std::cout << "skipped: " << entry.name << ": " << entry.why << '\n';
    }
    if (report.skipped.count() != 0) std::cout << report.skipped.count() << " skipped\n";
  } catch (std::exception const& error) {
    std::cerr << error.what() << '\n';
    return EXIT_FAILURE;
  }
}
