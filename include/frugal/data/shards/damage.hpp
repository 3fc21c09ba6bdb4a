// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/io_error.hpp>
#include <frugal/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace frugal {

/// What a set of shards does with a missing, truncated or damaged one. One that cannot be read now
/// is an error in either case.
enum class OnDamage {
  Fail,  ///< throws the DataError
  Skip,  ///< leaves out what is damaged, counts it and names it (DamageLog)
};

/// What was skipped: how much, and the first of it by name. Safe to use from several threads;
/// copies share one log. It is not named Damage: that is a checkpoint's (store/).
class DamageLog {
 public:
  /// A shard, block or sample that is left out, and why.
  struct Entry {
    std::string name;
    std::string why;
  };

  /// Names that are kept; all are counted.
  static constexpr std::size_t most_names = 100;

  /// Adds one damaged sample. A name that was kept before is neither counted nor kept again.
  void add(std::string name, std::string why) const;

  /// Adds what another log has; what it counted and did not name is counted here as well.
  void add(DamageLog const& other) const;

  /// How many were left out.
  std::uint64_t count() const;
  std::vector<Entry> entries() const;
  std::vector<std::string> names() const;

  /// "3 skipped: a.tar (the file is empty), b.tar (...), ..."; empty if nothing was.
  std::string text() const;

 private:
  struct Log {
    std::mutex mutex;
    std::uint64_t count = 0;
    std::vector<Entry> entries;
  };

  std::pair<std::uint64_t, std::vector<Entry>> both() const;

  std::shared_ptr<Log> log_ = std::make_shared<Log>();
};

/// Calls `open()`, which reads what errors call `name`. With OnDamage::Fail everything that it
/// throws passes through. With Skip what says that the content is damaged or missing is logged: a
/// DataError, a FormatError, a file that is not there or is no file. Returns whether `open`
/// returned.
///
/// What cannot be read now (IoError: too many open files, no permission, a failing disk or network)
/// and what changed (ChangedError) pass through in either case: to leave that out would make the
/// set smaller at one start, or on one rank, and not at another.
template <class Open>
bool open_or_skip(OnDamage on_damage, DamageLog const& log, std::string const& name, Open&& open) {
  auto const skip = [&](Error const& error) {
    Fault const& fault = error.fault();
    log.add(name, fault.why.empty() ? fault.what : fault.what + ": " + fault.why);
    return false;
  };
  if (on_damage == OnDamage::Fail) {
    std::forward<Open>(open)();
    return true;
  }
  try {
    std::forward<Open>(open)();
    return true;
  } catch (DataError const& error) {
    return skip(error);
  } catch (ChangedError const&) {
    throw;
  } catch (IoError const& error) {
    if (!detail::no_such_file(error.code)) throw;
    return skip(error);
  } catch (StoreError const& error) {
    return skip(error);
  }
}

namespace detail {

/// Keeps a StoreError of a writer from being skipped as a damaged sample: a disk that fails takes
/// no later sample either. For a call within open_or_skip, with rethrow() after it.
class WriteFailure {
 public:
  template <class Write>
  void guard(Write&& write) {
    try {
      std::forward<Write>(write)();
    } catch (StoreError const&) {
      failure_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::exception_ptr failure_;
};

}  // namespace detail

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/shards/damage.ipp>
#endif
