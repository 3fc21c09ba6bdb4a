// SPDX-License-Identifier: Apache-2.0
// The program that tests/fault/archive.py injects faults into: moves checkpoints to cold storage
// and back, or reports where they are.
//
//   fault_archive save RUN LAST          saves the steps 1 to LAST
//   fault_archive move RUN COLD HOW      moves all but the newest; HOW is folder or command
//   fault_archive restore RUN COLD HOW STEP
//   fault_archive check RUN COLD HOW     prints which steps are here and which are there, each read
//                                        to its end, as JSON
//
// Exit codes: 0 success, 3 a frugal Error, with its text on stderr; anything else is a crash.
#include <frugal/checkpoint/archive.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace {

using frugal::Archive;
using frugal::RunDirectory;

std::string text_of(std::uint64_t step, std::string const& name) {
  std::string text;
  for (std::uint64_t i = 0; i < 200; ++i)
    text += name + " of " + std::to_string(step * 7919 + i) + "\n";
  return text;
}

std::vector<std::string> const names{"model.safetensors", "state.json"};

frugal::ColdStorage storage(std::string const& cold, std::string const& how) {
  if (how == "folder") return frugal::ColdFolder{cold};
  return frugal::ColdCommand{.put = {"cp", "{file}", cold + "/{name}"},
                             .get = {"cp", cold + "/{name}", "{file}"},
                             .verify = {}};
}

int save(std::filesystem::path const& folder, std::uint64_t last) {
  RunDirectory run(folder);
  for (std::uint64_t step = 1; step <= last; ++step) {
    frugal::CheckpointWriter writer = run.begin(step);
    for (std::string const& name : names) {
      std::string const text = text_of(step, name);
      writer.add(name, [&](auto& sink) { sink.write(std::as_bytes(std::span(text))); });
    }
    run.commit(writer);
  }
  return 0;
}

/// Throws unless it is what save() wrote, whatever its manifest says.
void require_ours(frugal::SavedCheckpoint const& checkpoint) {
  frugal::verify(checkpoint);
  for (std::string const& name : names) {
    if (frugal::detail::read_text(checkpoint.folder / name) != text_of(checkpoint.step(), name)) {
      throw frugal::FormatError({.what = "it is not what was saved",
                                 .where = checkpoint.folder.string(),
                                 .why = "",
                                 .fix = ""});
    }
  }
}

int check(std::filesystem::path const& folder, std::string const& cold, std::string const& how) {
  nlohmann::json out{{"here", nlohmann::json::array()},
                     {"there", nlohmann::json::array()},
                     {"others", nlohmann::json::array()}};
  RunDirectory run(folder);
  for (auto const& checkpoint : run.list().whole) {
    require_ours(checkpoint);
    out["here"].push_back(checkpoint.step());
  }
  for (auto const& path : frugal::entries_of(folder / "archive")) {
    if (path.filename() != "index.json") out["others"].push_back(path.string());
  }
  for (auto const& path : frugal::entries_of(cold)) {
    if (path.extension() != ".zst") out["others"].push_back(path.string());
  }
  // Restores into an otherwise empty run with a copy of this index.
  auto const elsewhere = folder.parent_path() / "restored";
  std::filesystem::remove_all(elsewhere);
  RunDirectory empty(elsewhere);
  if (std::filesystem::exists(folder / "archive" / "index.json")) {
    std::filesystem::create_directory(elsewhere / "archive");
    std::filesystem::copy(folder / "archive" / "index.json", elsewhere / "archive" / "index.json");
  }
  Archive archive(empty, storage(cold, how));
  for (auto const& entry : archive.list()) {
    require_ours(archive.restore(entry.step));
    out["there"].push_back(entry.step);
  }
  std::filesystem::remove_all(elsewhere);
  std::cout << out << '\n';
  return 0;
}

int act(std::vector<std::string> const& given) {
  if (given[0] == "check") return check(given[1], given[2], given[3]);
  RunDirectory run(given[1], frugal::Access::maintain);
  Archive archive(run, storage(given[2], given[3]),
                  {.older_than = std::chrono::hours(24 * 90), .dry_run = false, .level = 1});
  if (given[0] == "restore") {
    require_ours(archive.restore(std::stoull(given[4])));
    return 0;
  }
  auto const now = std::chrono::system_clock::now() + std::chrono::hours(24 * 100);
  auto const report = archive.move(now);
  for (auto const& each : report.stayed) std::cerr << "stayed: " << each.why << '\n';
  return report.stayed.empty() ? 0 : 4;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> const given(argv + 1, argv + argc);
  try {
    if (given.size() == 3 && given[0] == "save") return save(given[1], std::stoull(given[2]));
    if (given.size() >= 4) return act(given);
  } catch (frugal::Error const& error) {
    std::cerr << error.what() << '\n';
    return 3;
  }
  std::cerr << "fault_archive save RUN LAST | move|restore|check RUN COLD HOW [STEP]\n";
  return 2;
}
