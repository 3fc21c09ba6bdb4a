// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/base/folder.hpp>
#include <frugal/data/curate/in_chunks.hpp>
#include <frugal/data/curate/run_file.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace frugal::detail {

/// A folder for run files, created when the first is needed and removed with this object.
class SpillFolder {
 public:
  explicit SpillFolder(std::filesystem::path base) : base_(std::move(base)) {}
  SpillFolder(SpillFolder const&) = delete;
  SpillFolder& operator=(SpillFolder const&) = delete;
  ~SpillFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }

  /// A free name; safe to call from several threads.
  std::filesystem::path next() {
    std::lock_guard const lock(mutex_);
    if (path_.empty()) {
      create_folders(base_);
      std::string name = (base_ / "frugal-curate-XXXXXX").string();
      if (::mkdtemp(name.data()) == nullptr) throw io_error("mkdtemp", base_, errno);
      path_ = name;
    }
    return path_ / ("run-" + std::to_string(runs_++));
  }

  /// Files created so far.
  std::uint64_t runs() const { return runs_; }

 private:
  std::filesystem::path base_;
  std::filesystem::path path_;
  std::mutex mutex_;
  std::uint64_t runs_ = 0;
};

/// Sorts records that need more than `memory` bytes, through run files. Each thread adds to a part
/// of its own. The result does not depend on threads or memory: records are totally ordered.
template <RunRecord Record>
class SpillSort {
 public:
  SpillSort(SpillFolder& folder, std::uint64_t memory, unsigned parts)
      : folder_(folder), memory_(memory), parts_(parts) {
    most_ = std::max<std::uint64_t>(16, memory / sizeof(Record) / parts);
  }

  void add(unsigned part, Record const& record) {
    Part& to = parts_[part];
    if (to.records.size() == most_) spill(to);
    if (to.records.capacity() == 0) reserve(to.records);
    to.records.push_back(record);
  }

  /// Calls `visit(record)` in ascending order, equal records as often as they were added. Once.
  template <class Visit>
  void visit(Visit&& visit) {
    auto const spilled = [](Part const& part) { return !part.files.empty(); };
    if (std::none_of(parts_.begin(), parts_.end(), spilled)) return visit_memory(visit);
    std::vector<std::filesystem::path> files;
    for (Part& part : parts_) {
      if (!part.records.empty()) spill(part);
      part.records = {};
      files.insert(files.end(), part.files.begin(), part.files.end());
    }
    visit_files(std::move(files), visit);
  }

 private:
  using Reader = RunReader<Record, File>;

  struct Part {
    std::vector<Record> records;
    std::vector<std::filesystem::path> files;
  };

  /// Once: growing would copy, and take half as much again. Untouched pages cost nothing, but the
  /// kernel refuses more than the machine has: a limit may be far above what is needed.
  void reserve(std::vector<Record>& records) const {
    try {
      records.reserve(static_cast<std::size_t>(most_));
    } catch (std::bad_alloc const&) {
    } catch (std::length_error const&) {
    }
  }

  void spill(Part& part) {
    std::sort(part.records.begin(), part.records.end());
    part.files.push_back(folder_.next());
    RunWriter<Record> writer(part.files.back());
    writer.write(part.records);
    writer.close();
    part.records.clear();
  }

  template <class Visit>
  void visit_memory(Visit& visit) {
    in_chunks(parts_.size(), 1, static_cast<unsigned>(parts_.size()),
              [&](unsigned, auto begin, auto) {
                auto& records = parts_[static_cast<std::size_t>(begin)].records;
                std::sort(records.begin(), records.end());
              });
    std::vector<std::span<Record const>> runs;
    for (Part& part : parts_) {
      if (!part.records.empty()) runs.emplace_back(part.records);
    }
    merge(
        runs, [](std::span<Record const> const& run) { return run.empty() ? nullptr : run.data(); },
        [](std::span<Record const>& run) { run = run.subspan(1); }, visit);
    for (Part& part : parts_) part.records = {};
  }

  /// Blocks of less than a page read slowly, so many files are first merged into fewer.
  template <class Visit>
  void visit_files(std::vector<std::filesystem::path> files, Visit& visit) {
    constexpr std::uint64_t least_block = 1U << 12;
    auto const at_once = std::clamp<std::uint64_t>(memory_ / least_block, 3, 512) - 1;
    while (files.size() > at_once) {
      std::vector<std::filesystem::path> const some(
          files.begin(), files.begin() + static_cast<std::ptrdiff_t>(at_once));
      files.erase(files.begin(), files.begin() + static_cast<std::ptrdiff_t>(at_once));
      files.push_back(folder_.next());
      RunWriter<Record> writer(files.back());
      std::vector<Record> block;
      block.reserve(records_of_block(at_once + 1));
      merge_files(some, [&](Record const& record) {
        block.push_back(record);
        if (block.size() == block.capacity()) {
          writer.write(block);
          block.clear();
        }
      });
      writer.write(block);
      writer.close();
    }
    merge_files(files, visit);
  }

  std::size_t records_of_block(std::uint64_t blocks) const {
    return static_cast<std::size_t>(std::max<std::uint64_t>(1, memory_ / blocks / sizeof(Record)));
  }

  template <class Visit>
  void merge_files(std::vector<std::filesystem::path> const& files, Visit&& visit) {
    std::vector<std::unique_ptr<Reader>> runs;
    for (std::filesystem::path const& path : files) {
      File file = File::open(path);
      std::uint64_t const size = file.size();
      runs.push_back(std::make_unique<Reader>(std::move(file), size, path.string(),
                                              records_of_block(files.size() + 1)));
    }
    merge(
        runs, [](std::unique_ptr<Reader> const& run) { return run->front(); },
        [](std::unique_ptr<Reader>& run) { run->pop(); }, visit);
    runs.clear();
    for (std::filesystem::path const& path : files) std::filesystem::remove(path);
  }

  /// A heap of runs by their first records.
  template <class Run, class Front, class Pop, class Visit>
  static void merge(std::vector<Run>& runs, Front const& front, Pop const& pop, Visit& visit) {
    auto const later = [&](std::size_t a, std::size_t b) {
      return *front(runs[b]) < *front(runs[a]);
    };
    std::vector<std::size_t> heap;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (front(runs[i]) != nullptr) heap.push_back(i);
    }
    std::make_heap(heap.begin(), heap.end(), later);
    while (!heap.empty()) {
      std::pop_heap(heap.begin(), heap.end(), later);
      Run& run = runs[heap.back()];
      // As long as no other run has a smaller record: one run alone needs no heap.
      do {
        visit(*front(run));
        pop(run);
      } while (front(run) != nullptr &&
               (heap.size() == 1 || !(*front(runs[heap.front()]) < *front(run))));
      if (front(run) == nullptr) {
        heap.pop_back();
      } else {
        std::push_heap(heap.begin(), heap.end(), later);
      }
    }
  }

  SpillFolder& folder_;
  std::uint64_t memory_;
  std::uint64_t most_;  // records of a part in memory
  std::vector<Part> parts_;
};

}  // namespace frugal::detail
