// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace frugal {

/// The four things an error has to tell: what happened, where, why, and what to do about it.
struct Fault {
  std::string what;   ///< what went wrong, as one clause without a full stop
  std::string where;  ///< file and offset, tensor, or step; empty where there is no place
  std::string why;    ///< the cause as far as it is known; may be empty
  std::string fix;    ///< what the reader should do, as a sentence
};

/// Base of everything that frugal throws. `what()` reads
/// "frugal: <what> (<where>): <why>. <fix>"; `fault()` has the parts.
class Error : public std::runtime_error {
 public:
  explicit Error(Fault fault) : std::runtime_error(sentence(fault)), fault_(std::move(fault)) {}

  Fault const& fault() const noexcept { return fault_; }

 private:
  static std::string sentence(Fault const& fault) {
    std::string text = "frugal: " + fault.what;
    if (!fault.where.empty()) text += " (" + fault.where + ")";
    if (!fault.why.empty()) text += ": " + fault.why;
    text += '.';
    if (!fault.fix.empty()) text += ' ' + fault.fix;
    return text;
  }

  Fault fault_;
};

/// A setting has a value with which no run is possible.
struct SettingsError : Error {
  using Error::Error;
};

/// A device that this process does not have; `why` lists those that it has.
struct DeviceError : SettingsError {
  using SettingsError::SettingsError;
};

/// A file or a source gives data that cannot be what it claims to be.
struct DataError : Error {
  using Error::Error;
};

/// A source has nothing to give.
struct EmptySourceError : DataError {
  using DataError::DataError;
};

/// A background worker threw, ended or hangs.
struct WorkerError : DataError {
  using DataError::DataError;
};

/// Two shapes that must fit together do not; both are in the text.
struct ShapeError : Error {
  using Error::Error;
};

/// A module that cannot be trained as it is, or whose forward pass fails.
struct ModuleError : Error {
  using Error::Error;
};

/// A rehearsal that did not pass; `why` lists the checks that failed.
struct SmokeError : Error {
  using Error::Error;
};

/// A loss with which training cannot go on; `where` has step, epoch and micro-batch.
struct LossError : Error {
  /// Where the window of the loss begins. A window that is no step has the step of another one, so
  /// that the place in the data tells windows apart, and the step does not.
  struct Window {
    std::uint64_t epoch = 0;     ///< epochs that were complete
    std::uint64_t position = 0;  ///< samples of its epoch before it, or `elsewhere`
    std::uint64_t step = 0;      ///< optimizer steps that were complete

    /// The position of a window that is known to another process alone.
    static constexpr auto elsewhere = static_cast<std::uint64_t>(-1);
  };

  LossError(Fault fault, Window const& of, double loss_)
      : Error(std::move(fault)), window(of), loss(loss_) {}

  Window window;
  double loss;
};

/// A loss that is NaN or infinite.
struct NonFiniteLossError : LossError {
  using LossError::LossError;
};

/// A loss far above those before it (Rollback::jump).
struct LossJumpError : LossError {
  using LossError::LossError;
};

/// Gradients that stay NaN or infinite, however far the loss is scaled down.
struct GradientError : Error {
  using Error::Error;
};

/// Memory does not hold even the smallest part into which a step can be split.
struct MemoryError : Error {
  using Error::Error;
};

/// A policy does what its hook does not allow.
struct PolicyError : Error {
  using Error::Error;
};

/// A policy watches a metric that validation does not produce.
struct MetricError : Error {
  using Error::Error;
};

/// The file system refused: a call failed, there is no space, a disk is read-only.
struct StoreError : Error {
  using Error::Error;
};

/// A stored file is not what it claims to be: damaged, cut off, or of another format.
struct FormatError : StoreError {
  using StoreError::StoreError;
};

/// Another trainer works in this run directory.
struct LockError : StoreError {
  using StoreError::StoreError;
};

/// A cloud's metadata service refused, broke off, or gave no sensible answer.
struct MetadataError : Error {
  using Error::Error;
};

/// There is no metadata service at the address: the machine is probably not in that cloud.
struct UnreachableError : MetadataError {
  using MetadataError::MetadataError;
};

/// Persisted state that does not fit the policy it is given to.
struct StateError : Error {
  using Error::Error;
};

}  // namespace frugal
