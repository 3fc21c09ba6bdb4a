// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: archive
// Moves the old checkpoints of a run to cold storage, and brings them back. Without --go it only
// says what it would do.
//
//   archive_checkpoints --run runs/demo --to /mnt/cold/demo --go
//   archive_checkpoints --run runs/demo --put "aws s3 cp {file} s3://bucket/demo/{name}"
//                       --get "aws s3 cp s3://bucket/demo/{name} {file}" --restore 500
#include <frugal/checkpoint/archive.hpp>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace fr = frugal;

/// The words of a command. Blanks alone separate them: there is no shell, and nothing is quoted.
fr::Command words_of(std::string const& line) {
  std::istringstream words(line);
  fr::Command command;
  for (std::string word; words >> word;) command.push_back(word);
  return command;
}

std::string day_of(std::int64_t seconds) {
  std::time_t const time = seconds;
  std::tm utc{};
  gmtime_r(&time, &utc);
  std::ostringstream text;
  text << std::put_time(&utc, "%Y-%m-%d");
  return text.str();
}

double mib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

std::uint64_t size_of(fr::SavedCheckpoint const& checkpoint) {
  std::uint64_t bytes = 0;
  for (fr::FileEntry const& file : checkpoint.manifest.files) bytes += file.size;
  return bytes;
}

int list(std::vector<fr::ArchivedCheckpoint> const& entries) {
  for (fr::ArchivedCheckpoint const& entry : entries) {
    std::cout << "step " << entry.step << "  saved " << day_of(entry.saved_at) << "  moved "
              << day_of(entry.moved_at) << "  " << mib(entry.size) << " MiB  " << entry.name
              << '\n';
  }
  std::cout << entries.size() << " checkpoints in cold storage\n";
  return EXIT_SUCCESS;
}

int move(fr::Archive& archive, bool go) {
  fr::ArchiveReport const report = archive.move();
  std::uint64_t bytes = 0;
  for (fr::SavedCheckpoint const& checkpoint : report.moved) {
    bytes += size_of(checkpoint);
    std::cout << (go ? "moved " : "would move ") << checkpoint.folder.string() << "  saved "
              << day_of(checkpoint.manifest.saved_at) << "  " << mib(size_of(checkpoint))
              << " MiB\n";
  }
  for (fr::Damage const& each : report.stayed) {
    std::cout << "stays: " << each.folder.string() << ": " << each.why << '\n';
  }
  std::cout << report.moved.size() << " checkpoints, " << mib(bytes) << " MiB"
            << (go ? " moved\n" : " would be moved; --go does it\n");
  return report.stayed.empty() ? EXIT_SUCCESS : EXIT_FAILURE;  // somebody should look at those
}

int main(int argc, char** argv) {
  std::string run, to, put, get, verify;
  int days = 90;
  int level = 3;
  std::uint64_t step = 0;
  bool go = false;
  bool only_list = false;

  CLI::App app("Moves old checkpoints of a run to cold storage, and brings them back.");
  app.add_option("--run", run, "the run directory")->required()->check(CLI::ExistingDirectory);
  auto* const folder = app.add_option("--to", to, "cold storage that is a folder");
  app.add_option("--put", put, "or the command that takes {file} to {name} there")
      ->excludes(folder);
  app.add_option("--get", get, "the command that brings {name} back to {file}")->excludes(folder);
  app.add_option("--verify", verify, "a command that compares {name} there with {file} or {hash}")
      ->excludes(folder);
  app.add_option("--older-than", days, "days since the save")
      ->check(CLI::Range(0, 100000))
      ->capture_default_str();
  app.add_option("--level", level, "of zstd")->check(CLI::Range(1, 19))->capture_default_str();
  app.add_flag("--go", go, "do it; without this, only say what would be done");
  auto* const listing = app.add_flag("--list", only_list, "say what is in cold storage");
  auto* const restoring =
      app.add_option("--restore", step, "bring this step back")->excludes(listing);
  CLI11_PARSE(app, argc, argv);
  std::cout << std::fixed << std::setprecision(1);

  try {
    if (only_list) return list(fr::ArchiveIndex(run + "/archive/index.json").entries());
    fr::ColdStorage storage = fr::ColdFolder{to};
    if (to.empty()) {
      storage =
          fr::ColdCommand{.put = words_of(put), .get = words_of(get), .verify = words_of(verify)};
    }
    bool const changes = go || restoring->count() != 0;
    fr::RunDirectory directory(run, changes ? fr::Access::maintain : fr::Access::read);
    fr::Archive archive(
        directory, storage,
        {.older_than = std::chrono::hours(24) * days, .dry_run = !go, .level = level});
    if (restoring->count() == 0) return move(archive, go);
    std::cout << "restored to " << archive.restore(step).folder.string() << '\n';
  } catch (fr::Error const& error) {
    std::cerr << error.what() << '\n';
    return EXIT_FAILURE;
  }
}
