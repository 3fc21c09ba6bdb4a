// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/search/folder_files.hpp>

#include "support/files.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace frugal_test::search_folder_files {

using namespace frugal;
using namespace frugal::detail;
using frugal::detail::MicroBatchFile;
using support::TemporaryFolder;
using support::text_of;

SearchDomain const domain{.recipes = {"a", "b"},
                          .settings = {{.name = "lr", .values = LogUniform{1e-3, 1}, .recipes = {}},
                                       {.name = "x", .values = Uniform{0, 1}, .recipes = {0}}}};

std::string refusal(std::filesystem::path const& folder, std::string const& candidate) {
  try {
    claim_folder(folder, candidate);
  } catch (StateError const& error) {
    return error.what();
  }
  return {};
}

TEST_CASE("a folder with checkpoints is that of one candidate, seed and search") {
  SearchTrial trial{.candidate = {.recipe = 1, .values = {0.1, std::nullopt}}, .seed = 7};
  SearchIdentity const identity{{"seed", "7"}};
  std::string const one = candidate_text(domain, trial, identity);
  CHECK(one.starts_with("frugal candidate 1\nrecipe b\nlr 0.1\nseed 7\nsearch "));
  CHECK(candidate_text(domain, trial, {{"seed", "8"}}) != one);

  TemporaryFolder folder;
  CHECK(refusal(folder.path(), one).empty());
  CHECK(text_of(folder / "candidate") == one);
  trial.candidate.values[0] = 0.2;
  std::string const other = candidate_text(domain, trial, identity);
  // Without checkpoints there is nothing that could be taken for its own.
  CHECK(refusal(folder.path(), other).empty());
  std::filesystem::create_directories(folder / "checkpoints/step-00000001");
  CHECK(refusal(folder.path(), other).empty());
  CHECK(refusal(folder.path(), one).find("there it is 'lr 0.2', and in the journal 'lr 0.1'") !=
        std::string::npos);
  trial.seed = 9;
  CHECK(refusal(folder.path(), candidate_text(domain, trial, identity))
            .find("there it is 'seed 7', and in the journal 'seed 9'") != std::string::npos);
  CHECK(text_of(folder / "candidate") == other);
  std::filesystem::remove(folder / "candidate");
  CHECK(refusal(folder.path(), other).find("it has no file that names its candidate") !=
        std::string::npos);
  // A link is not followed.
  std::ofstream(folder / "elsewhere") << other;
  std::filesystem::create_symlink(folder / "elsewhere", folder / "candidate");
  CHECK(!refusal(folder.path(), other).empty());
}

std::int64_t read(MicroBatchFile const& file) {
  std::int64_t samples = -1;
  file.read_into(samples);
  return samples;
}

TEST_CASE("an architecture has the micro-batch that was found for it, and no other one") {
  TemporaryFolder folder;
  MicroBatchFile const wide(folder.path(), "width 64"), narrow(folder.path(), "width 8");
  CHECK(read(wide) == -1);
  wide.write(16, true);
  CHECK(read(wide) == 16);
  CHECK(read(narrow) == -1);
  narrow.write(0, true);
  CHECK(read(narrow) > 1'000'000);  // the whole batch, and nothing to search for
}

TEST_CASE("a search that was cut short writes nothing, and memory that ran out later does") {
  TemporaryFolder folder;
  MicroBatchFile const file(folder.path(), "width 64");
  file.write(1, false);
  CHECK(read(file) == -1);
  file.write(16, true);
  file.write(32, false);
  CHECK(read(file) == 16);
  file.write(0, false);
  CHECK(read(file) == 16);
  file.write(8, false);
  CHECK(read(file) == 8);
}

}  // namespace frugal_test::search_folder_files
