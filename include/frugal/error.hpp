// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace frugal {

/// The four parts of an error: what happened, where, why, and what to do about it.
struct Fault {
  std::string what;   ///< what went wrong, as one clause without a full stop
  std::string where;  ///< file and offset, tensor, or step; empty if there is none
  std::string why;    ///< the cause, as far as known; may be empty
  std::string fix;    ///< what the reader should do, as a sentence
};

/// Base of all frugal exceptions. `what()` reads "frugal: <what> (<where>): <why>. <fix>";
/// `fault()` has the parts.
class Error : public std::runtime_error {
 public:
  explicit Error(Fault fault) : std::runtime_error(sentence(fault)), fault_(std::move(fault)) {}

  Fault const& fault() const noexcept { return fault_; }

  /// For whoever passes an error on and knows more of its place: puts `place` before `fault().where`.
  void add_place(std::string const& place);

 private:
  static std::string sentence(Fault const& fault);

  Fault fault_;
};

/// A setting has a value with which a run is impossible.
struct SettingsError : Error {
  using Error::Error;
};

/// A device that is not available; `why` lists the available ones.
struct DeviceError : SettingsError {
  using SettingsError::SettingsError;
};

/// A file or a source has data that does not match its claims.
struct DataError : Error {
  using Error::Error;
};

/// A source has no batches.
struct EmptySourceError : DataError {
  using DataError::DataError;
};

/// A class label that the module's output has no class for; the label is in the text.
struct LabelError : DataError {
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

/// Two dtypes that must be the same are not; both are in the text.
struct DtypeError : Error {
  using Error::Error;
};

/// A module that cannot be trained, or whose forward pass fails.
struct ModuleError : Error {
  using Error::Error;
};

/// Processes that train together could not meet, or one of them ended or hangs; `what` names it.
struct ClusterError : Error {
  using Error::Error;
};

/// A dry run that failed; `why` lists the failed checks.
struct DryRunError : Error {
  using Error::Error;
};

/// A loss with which training cannot continue, or what comes of one: gradients, weights. `where`
/// has step, epoch and micro-batch.
struct LossError : Error {
  /// Where the window of the loss begins. A window that is no step shares its step count with
  /// another one, so the position in the data identifies a window, and the step does not.
  struct Window {
    std::uint64_t epoch = 0;     ///< completed epochs
    std::uint64_t position = 0;  ///< samples of its epoch before it, or `elsewhere`
    std::uint64_t step = 0;      ///< completed optimizer steps

    /// The position of a window that is not known, or only to another process.
    static constexpr auto elsewhere = static_cast<std::uint64_t>(-1);

    friend constexpr bool operator==(Window const&, Window const&) = default;
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

/// The weights of a window's losses sum to zero: it has nothing to learn from.
struct ZeroWeightError : LossError {
  using LossError::LossError;
};

/// Gradients that are NaN or infinite although the loss is not; `loss` is their norm.
struct NonFiniteGradientError : LossError {
  using LossError::LossError;
};

/// Weights, or an optimizer's moments, that are NaN or infinite. `window` is the one that made them
/// so, or has the position `elsewhere` if that is not known; `loss` is NaN.
struct NonFiniteWeightsError : LossError {
  using LossError::LossError;
};

/// Windows whose gradients stay NaN or infinite, one after the other: however far the loss is
/// scaled down (FP16), and although each was skipped.
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

/// A call would get in the way of a fit, or of another call, that is in progress.
struct ConcurrentFitError : Error {
  using Error::Error;
};

/// A policy watches a metric that validation does not produce.
struct MetricError : Error {
  using Error::Error;
};

/// A run ended before the metric had the value that it was trained for.
struct TargetError : Error {
  using Error::Error;
};

/// The file system failed: a call failed, there is no space, a disk is read-only.
struct StoreError : Error {
  using Error::Error;
};

/// A weight is beyond the numbers of the type in which it is to be stored: it would become infinite. No
/// retry and no space on the disk can help.
struct WeightRangeError : StoreError {
  using StoreError::StoreError;
};

/// A stored file does not match its claims: damaged, truncated, or of another format.
struct FormatError : StoreError {
  using StoreError::StoreError;
};

/// A file of a data set was changed, replaced or removed while it is read: its bytes are not those
/// of the set that the run began with. Never skipped as damage.
struct ChangedError : StoreError {
  using StoreError::StoreError;
};

/// Another trainer uses this run directory.
struct LockError : StoreError {
  using StoreError::StoreError;
};

/// A cloud's metadata service refused, closed the connection, or gave no sensible response.
struct MetadataError : Error {
  using Error::Error;
};

/// There is no metadata service at the address: the machine is probably not in that cloud.
struct UnreachableError : MetadataError {
  using MetadataError::MetadataError;
};

/// No trial of a search has a result.
struct SearchError : Error {
  using Error::Error;
};

/// Persisted state that does not fit the policy that loads it.
struct StateError : Error {
  using Error::Error;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/error.ipp>
#endif
