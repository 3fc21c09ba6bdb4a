// SPDX-License-Identifier: Apache-2.0
// Trainers that find their newest checkpoint damaged, by one bit or by truncation.
#pragma once

#include "outcome.hpp"

#include "support/checkpoints.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

namespace frugal_test::fault {

class Damages {
 public:
  /// About so many bit flips and half as many truncations, spread evenly over all files of a
  /// checkpoint.
  nlohmann::json run(std::uint64_t positions) {
    std::filesystem::create_directories(whole_.folder);
    run_to_the_end(whole_, scratch_ / "words");
    expected_ = facts_in(whole_.folder);
    auto const list = frugal::RunDirectory(whole_.folder, frugal::Access::read).list().whole;
    require(list.size() >= 2, "there is no checkpoint before the last");
    newest_ = list[0].folder.filename();
    before_ = list[1].step();
    collect(positions);
    for (std::size_t first = 0; first < all_.size(); first += in_one_process) {
      try_some(first, std::min(all_.size(), first + in_one_process));
    }
    return {{"flipped", flips_}, {"cut", all_.size() - flips_}, {"bytes", bytes_}};
  }

 private:
  static constexpr std::size_t in_one_process = 50;

  struct Damage {
    std::filesystem::path file;
    std::uint64_t at = 0;  ///< a bit, or the byte of the truncation
    bool cut = false;
  };

  void collect(std::uint64_t positions) {
    std::vector<std::pair<std::filesystem::path, std::uint64_t>> files;
    for (auto const& each :
         std::filesystem::directory_iterator(whole_.folder / "checkpoints" / newest_)) {
      files.emplace_back(each.path().filename(), each.file_size());
      bytes_ += each.file_size();
    }
    std::sort(files.begin(), files.end());
    std::uint64_t const flips = std::min(positions, 8 * bytes_);
    std::uint64_t const cuts = std::min(positions / 2, bytes_);
    for (auto const& [file, size] : files) {
      // At least the first and the last of each.
      std::uint64_t const flipped =
          std::min(8 * size, std::max<std::uint64_t>(2, flips * size / bytes_));
      for (std::uint64_t i = 0; i < flipped; ++i) {
        all_.push_back({file, i * (8 * size - 1) / (flipped - 1), false});
      }
      flips_ += flipped;
      std::uint64_t const cut = std::min(size, std::max<std::uint64_t>(2, cuts * size / bytes_));
      for (std::uint64_t i = 0; i < cut; ++i) {
        all_.push_back({file, i * (size - 1) / (cut - 1), true});
      }
    }
  }

  void try_some(std::size_t first, std::size_t end) {
    Start start(scratch_ / "words", [&](Told& told) {
      for (std::size_t i = first; i < end; ++i) {
        told.position = static_cast<int>(i);
        one(all_[i], told);
      }
      return 0;
    });
    End const ended = start.wait();
    if (ended.exited(0)) return;
    Damage const& damage = all_[static_cast<std::size_t>(start.told().position.load())];
    std::ostringstream text;
    text << damage.file << (damage.cut ? " cut off at byte " : " with another bit ") << damage.at
         << ": " << ended.words() << ", " << start.words();
    throw Violation(text.str());
  }

  void one(Damage const& damage, Told& told) const {
    Job job = whole_;
    job.folder = scratch_ / "damaged";
    std::filesystem::remove_all(job.folder);
    std::filesystem::copy(whole_.folder, job.folder, std::filesystem::copy_options::recursive);
    std::filesystem::remove(facts_of(job.folder));
    auto const file = job.folder / "checkpoints" / newest_ / damage.file;
    if (damage.cut) {
      std::filesystem::resize_file(file, damage.at);
    } else {
      support::flip_bit(file, damage.at);
    }
    frugal::Report const report = fault::run(job, told);
    require(report.resumed.has_value(), "no checkpoint was used");
    require(report.resumed->step == before_,
            "step " + std::to_string(report.resumed->step) + " was used, not the one before it");
    require(report.resumed->damaged.size() == 1, "the damage is not reported");
    require(report.resumed->damaged[0].find(newest_.string()) != std::string::npos,
            "another checkpoint is reported: " + report.resumed->damaged[0]);
    require_same_facts(facts_in(job.folder), expected_);
  }

  Scratch scratch_;
  Job whole_{.folder = scratch_ / "whole", .epochs = 1, .async = false};
  Outcome expected_;
  std::filesystem::path newest_;
  std::uint64_t before_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t flips_ = 0;
  std::vector<Damage> all_;
};

}  // namespace frugal_test::fault
