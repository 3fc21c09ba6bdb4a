// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <frugal/base/json_writer.hpp>
#include <frugal/checkpoint/manifest.hpp>
#include <frugal/core/libtorch/quietly.hpp>
#include <frugal/core/state/save_board.hpp>
#include <frugal/core/state/state_dict.hpp>

namespace frugal::detail {

/// What a process has written of a checkpoint that several write side by side.
struct PartReport {
  struct Part {
    std::string of{};                    ///< the file of which it is a part: "model.safetensors"
    FileEntry file{};                    ///< as it is called until the checkpoint is whole
    std::vector<std::string> tensors{};  ///< by name
    std::uint64_t bytes = 0;             ///< of the tensors
  };

  std::vector<Part> parts{};
  /// Of a run whose processes have different layers: values of its layers, and hashes of what all have:
  /// see snapshot.hpp.
  std::map<std::string, StateDict::Value> values{};
  std::map<std::string, std::uint64_t> common{};
  std::string bad{};    ///< a tensor that is not finite; then nothing is written
  std::string error{};  ///< why nothing is written

  std::string text() const;
  static PartReport parse(std::string_view text, unsigned rank);

 private:
  static constexpr char const* format = "frugal part of a checkpoint";
};

/// What a process calls its part of a file until the checkpoint is whole.
std::string part_name(unsigned rank, std::string const& of);

/// The saves that the processes of a run write side by side: the first one makes the folder, each writes
/// its files there and reports them, and the first one makes them a checkpoint.
class SharedSave {
 public:
  explicit SharedSave(std::shared_ptr<SaveBoard> board) : board_(std::move(board)) {}

  unsigned rank() const { return board_->rank(); }

  /// Whether all processes see the same folder of checkpoints. `checkpoints`: as this process names it.
  /// All call it.
  bool all_see(std::filesystem::path checkpoints);

  /// A save begins. In the thread of the loop, in all processes.
  void next() { ++save_; }

  /// In the first process: where the others write. Without announce() they learn that there is no save.
  class Beginning {
   public:
    explicit Beginning(SharedSave& save) : save_(save) {}
    Beginning(Beginning const&) = delete;
    Beginning& operator=(Beginning const&) = delete;
    ~Beginning() {
      if (!announced_) quietly([&] { save_.board_->post(save_.key("folder"), ""); });
    }
    void announce(std::filesystem::path const& folder);

   private:
    SharedSave& save_;
    bool announced_ = false;
  };

  /// In the other processes, in the folder of checkpoints: empty if there is no save.
  std::filesystem::path folder(std::uint64_t step);
  void report(PartReport const& report) { board_->post(key(rank()), report.text()); }

  /// In the first process, those of the others. Waits until all have written.
  std::vector<PartReport> reports();
  /// StoreError if one has written nothing.
  void require_written(std::vector<PartReport> const& reports) const;

 private:
  /// A file system of several machines may show a new file late.
  static bool sees_file(std::filesystem::path const& path, std::string const& text);

  // What comes from the board is no path: it may be of someone else (docs/cluster/trust.md).

  [[noreturn]] static void refuse_name(std::string const& name, std::string why);
  /// As temporary_name() makes them.
  static void require_name(std::string const& name, std::string const& of);
  static void require_part(PartReport const& report, PartReport::Part const& part, unsigned rank);

  std::string key(std::string const& what) const { return std::to_string(save_) + "/" + what; }
  std::string key(unsigned rank) const { return key(std::to_string(rank)); }

  std::shared_ptr<SaveBoard> board_;
  std::filesystem::path checkpoints_;
  std::uint64_t save_ = 0;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/policy/checkpoint/shared_save.ipp>
#endif
