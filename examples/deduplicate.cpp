// SPDX-License-Identifier: Apache-2.0
// torch-free
// Finds copies and near-duplicates among texts, and writes which samples stay and why:
//
//   deduplicate articles.jsonl --report removed.jsonl --page removed.html --kept kept.jsonl
//
// The texts are the lines of a file, the files of a folder, or the entries of a dictionary in
// dictd's format (the path of its .index).
#include <frugal/base/file.hpp>
#include <frugal/base/folder.hpp>
#include <frugal/data/curate/curated.hpp>
#include <frugal/data/curate/curation.hpp>
#include <frugal/data/curate/curation_page.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "dictd.hpp"

namespace {

namespace fs = std::filesystem;

/// The lines of a file.
class Lines {
 public:
  explicit Lines(fs::path const& path)
      : file_(std::make_shared<frugal::MappedFile const>(path)), name_(path.filename().string()) {
    std::string_view const all = text();
    for (std::size_t at = 0; at < all.size(); at = all.find('\n', at) + 1) {
      begins_.push_back(at);
      if (all.find('\n', at) == all.npos) break;
    }
  }

  std::uint64_t size() const { return begins_.size(); }
  std::string_view get(std::uint64_t index) const {
    std::string_view const rest = text().substr(begins_.at(static_cast<std::size_t>(index)));
    return rest.substr(0, rest.find('\n'));
  }
  std::string name(std::uint64_t index) const { return name_ + ":" + std::to_string(index + 1); }
  std::string identity() const {
    return "lines " + frugal::hex_of(frugal::Hash::of(file_->bytes()));
  }

 private:
  std::string_view text() const {
    return {reinterpret_cast<char const*>(file_->bytes().data()), file_->bytes().size()};
  }

  std::shared_ptr<frugal::MappedFile const> file_;
  std::string name_;
  std::vector<std::size_t> begins_;
};

/// The files of a folder and of the folders in it, by name.
class Files {
 public:
  explicit Files(fs::path const& folder) : folder_(folder) {
    for (auto const& each : fs::recursive_directory_iterator(folder)) {
      if (each.is_regular_file() && each.path().filename() != ".curated")
        paths_.push_back(each.path());
    }
    std::sort(paths_.begin(), paths_.end());
  }

  std::uint64_t size() const { return paths_.size(); }
  std::string get(std::uint64_t index) const {
    frugal::MappedFile const file(paths_.at(static_cast<std::size_t>(index)));
    return {reinterpret_cast<char const*>(file.bytes().data()), file.bytes().size()};
  }
  std::string name(std::uint64_t index) const {
    return fs::relative(paths_.at(static_cast<std::size_t>(index)), folder_).string();
  }
  std::string identity() const {
    std::string all;
    for (fs::path const& path : paths_) {
      all += fs::relative(path, folder_).string() + '\n' + std::to_string(fs::file_size(path)) +
             '\n' + std::to_string(fs::last_write_time(path).time_since_epoch().count()) + '\n';
    }
    return "files " + frugal::hex_of(frugal::content_hash(all));
  }

 private:
  fs::path folder_;
  std::vector<fs::path> paths_;
};

struct Outputs {
  fs::path report, page, kept;
  bool mark = false;
};

/// The data are read while the outputs are written.
void require_elsewhere(fs::path const& data, Outputs const& to) {
  for (fs::path const& each : {to.report, to.page, to.kept}) {
    std::error_code ignored;  // there is no such file yet
    if (each.empty() || !fs::equivalent(each, data, ignored)) continue;
    throw frugal::SettingsError({.what = "an output would replace the data",
                                 .where = each.string(),
                                 .why = "it is the file that is read",
                                 .fix = "Give it another name."});
  }
}

void print(frugal::Curation const& found) {
  std::cout << found.samples << " samples, " << found.bytes << " bytes\n"
            << found.removed.size() << " removed, " << found.copies()
            << " of them copies: " << found.removed_bytes() << " bytes\n";
  if (auto const dollars = found.dollars_per_epoch())
    std::cout << "$" << *dollars << " saved per epoch\n";
}

template <frugal::SampleSet Set>
void run(Set const& set, frugal::Deduplicate const& settings, Outputs const& to) {
  auto const [kept, found] = frugal::curate(set, settings);
  auto const name = [&](std::uint64_t index) { return set.name(index); };
  print(found);
  if (!to.report.empty()) frugal::write_curation(to.report, found, name);
  if (!to.page.empty()) {
    frugal::write_curation_page(to.page, found, {.name = name, .text = [&](std::uint64_t index) {
                                                   return std::string(set.get(index));
                                                 }});
  }
  if (to.kept.empty()) return;
  std::ofstream file(to.kept, std::ios::binary);
  for (std::uint64_t i = 0; i < kept.size(); ++i) file << kept.get(i) << '\n';
  file.close();
  if (!file)
    throw frugal::StoreError({.what = "the kept samples cannot be written",
                              .where = to.kept.string(),
                              .why = "",
                              .fix = "Make room."});
  if (to.mark) frugal::mark_curated(to.kept, {.name = kept.curated(), .why = found.method});
}

}  // namespace

int main(int argc, char** argv) {
  fs::path data;
  Outputs to;
  frugal::Deduplicate settings;
  std::string of = "words", keep = "first";
  std::uint64_t mebibytes = 1024;
  CLI::App app("Finds copies and near-duplicates among texts.");
  app.add_option("data", data, "a file of lines, a folder of files, or the .index of a dictionary")
      ->required()
      ->check(CLI::ExistingPath);
  app.add_option("--name", settings.name, "of the set, for overrides");
  app.add_option("--of", of, "shingles are runs of these")
      ->check(CLI::IsMember({"words", "characters"}))
      ->capture_default_str();
  app.add_option("--length", settings.shingles.length, "of a shingle")->capture_default_str();
  app.add_option("--threshold", settings.threshold, "least Jaccard similarity")
      ->capture_default_str();
  app.add_option("--bands", settings.bands.bands)->capture_default_str();
  app.add_option("--rows", settings.bands.rows, "hashes of a band")->capture_default_str();
  app.add_option("--keep", keep, "which of a group stays")
      ->check(CLI::IsMember({"first", "longest"}))
      ->capture_default_str();
  app.add_option("--threads", settings.threads, "0: one for each core")->capture_default_str();
  app.add_option("--memory", mebibytes, "MiB for hashes; more goes to files")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40))
      ->capture_default_str();
  app.add_option("--spill", settings.spill, "folder of these files");
  app.add_option("--even-if-curated", settings.even_if_curated, "the name of a curated set");
  app.add_option("--price-per-hour", settings.price.per_hour, "dollars");
  app.add_option("--seconds-per-sample", settings.price.seconds_per_sample, "of training");
  app.add_option("--seconds-per-byte", settings.price.seconds_per_byte, "of training");
  app.add_option("--report", to.report, "JSONL file of what was removed");
  app.add_option("--page", to.page, "HTML page of it");
  auto* const kept = app.add_option("--kept", to.kept, "file for the samples that stay");
  app.add_flag("--mark", to.mark, "mark that file as curated")->needs(kept);
  CLI11_PARSE(app, argc, argv);
  settings.shingles.of = of == "words" ? frugal::ShingleOf::words : frugal::ShingleOf::characters;
  settings.keep = keep == "first" ? frugal::KeepSample::first : frugal::KeepSample::longest;
  settings.memory = mebibytes << 20;
  settings.data = data;
  if (settings.name.empty()) settings.name = data.stem().string();
  try {
    require_elsewhere(data, to);
    if (fs::is_directory(data)) {
      run(Files(data), settings, to);
    } else if (data.extension() == ".index") {
      run(dictd::Dictionary(data), settings, to);
    } else {
      run(Lines(data), settings, to);
    }
  } catch (std::exception const& error) {
    std::cerr << error.what() << '\n';
    return EXIT_FAILURE;
  }
}
