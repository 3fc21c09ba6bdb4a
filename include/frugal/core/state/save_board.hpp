// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace frugal {

/// Texts that the processes of a run leave for each other while each writes its part of a checkpoint.
///
/// Threads  any, one at a time.
class SaveBoard {
 public:
  SaveBoard(unsigned rank, unsigned count) : rank_(rank), count_(count) {}
  SaveBoard(SaveBoard const&) = delete;
  SaveBoard& operator=(SaveBoard const&) = delete;
  virtual ~SaveBoard() = default;

  unsigned rank() const { return rank_; }
  unsigned count() const { return count_; }

  virtual void post(std::string const& key, std::string const& text) = 0;
  /// Waits until this process has posted it. ClusterError if one has ended, or takes too long.
  virtual std::string await(unsigned rank, std::string const& key) = 0;
  /// Removes what all have read.
  virtual void forget(std::string const& key) = 0;

 private:
  unsigned rank_;
  unsigned count_;
};

}  // namespace frugal
