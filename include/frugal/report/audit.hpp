// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <torch/nn/module.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/base/hash.hpp>
#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/options.hpp>
#include <frugal/core/compose/outcome.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/settings.hpp>
#include <frugal/core/state/module_tensors.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal::detail {

/// The precision of FP32 for each operation on CUDA and in oneDNN. Setting that of all products
/// writes these too, and setting it back does not restore what was not set ("none").
template <class Getter = decltype(&at::Context::float32Precision)>
class Float32Precisions;
template <class Precision, class Backend, class Op>
class Float32Precisions<Precision (at::Context::*)(Backend, Op) const> {
 public:
  explicit Float32Precisions(at::Context& context) : context_(context) {
    if constexpr (std::is_enum_v<Backend>) {  // names before LibTorch 2.10
      for (Backend const backend : {Backend::CUDA, Backend::MKLDNN}) {
        for (Op const op : {Op::CONV, Op::RNN, Op::MATMUL}) {
          all_.push_back({backend, op, context.float32Precision(backend, op)});
        }
      }
    }
  }
  void restore() const {
    for (Entry const& each : all_) {
      context_.setFloat32Precision(each.backend, each.op, each.precision);
    }
  }

 private:
  struct Entry {
    std::remove_cvref_t<Backend> backend;
    std::remove_cvref_t<Op> op;
    Precision precision;
  };
  at::Context& context_;
  std::vector<Entry> all_;
};

/// For its lifetime, LibTorch uses deterministic kernels only and computes FP32 in FP32. Then
/// restores the previous settings, which are process-wide.
class [[nodiscard]] Deterministic {
 public:
  Deterministic() {
    context_.setDeterministicAlgorithms(true, /*warn_only=*/false);
    context_.setDeterministicCuDNN(true);
    // Benchmarking picks the fastest kernel by the clock, so another run may get another kernel.
    context_.setBenchmarkCuDNN(false);
    context_.setDeterministicMkldnn(true);
    context_.setFloat32MatmulPrecision("highest");
    context_.setAllowTF32CuDNN(false);
  }
  Deterministic(Deterministic const&) = delete;
  Deterministic& operator=(Deterministic const&) = delete;
  ~Deterministic() {
    context_.setDeterministicAlgorithms(algorithms_, warn_only_);
    context_.setDeterministicCuDNN(cudnn_);
    context_.setBenchmarkCuDNN(benchmark_);
    context_.setDeterministicMkldnn(mkldnn_);
    context_.setFloat32MatmulPrecision(precision_ == at::Float32MatmulPrecision::HIGHEST ? "highest"
                                       : precision_ == at::Float32MatmulPrecision::HIGH  ? "high"
                                                                                        : "medium");
    context_.setAllowTF32CuDNN(tf32_);
    float32_.restore();
  }

 private:
  at::Context& context_ = at::globalContext();
  bool algorithms_ = context_.deterministicAlgorithms();
  bool warn_only_ = context_.deterministicAlgorithmsWarnOnly();
  bool cudnn_ = context_.deterministicCuDNN();
  bool benchmark_ = context_.benchmarkCuDNN();
  bool mkldnn_ = context_.deterministicMkldnn();
  at::Float32MatmulPrecision precision_ = context_.float32MatmulPrecision();
  bool tf32_ = context_.allowTF32CuDNN();
  Float32Precisions<> float32_{context_};
};

/// cuBLAS is deterministic only with a fixed workspace size, which it reads from the environment
/// (nullptr if unset) at its first use.
void require_workspace(char const* config);

}  // namespace frugal::detail

namespace frugal {

/// Every run on one machine with one number of threads gives identical bits.
struct BitExact {};

/// XXH3 of every parameter and buffer of a module: names, types, shapes and bytes.
std::uint64_t hash_of_tensors(torch::nn::Module& module);

/// The identity of a module's weights at one moment of a run.
struct AuditMark {
  std::uint64_t epoch = 0;  ///< completed epochs
  std::uint64_t step = 0;   ///< optimizer steps
  std::uint64_t hash = 0;   ///< hash_of_tensors

  friend bool operator==(AuditMark const&, AuditMark const&) = default;
};

template <class What = BitExact>
struct Audit {
  static_assert(detail::never<What>, "frugal: Audit<...>: unknown option. Options: BitExact.");
};

/// Makes a run deterministic to the bit, and hashes its weights at the end of every epoch, so that
/// two runs can be compared by one line.
///
/// Lever   none: it shows whether another lever has changed a result.
/// Cost    LibTorch's deterministic kernels, which fill new memory before use; at the end of an
///         epoch one read of all parameters and buffers, from a device with a host sync.
/// State   the hashes so far; a resumed run has the same ones as an uninterrupted run.
/// Errors  does not compile with a Precision other than FP32, or with Checkpoint's WeightsIn<BF16>.
///         ModuleError from an operator without a deterministic kernel; SettingsError on CUDA
///         without CUBLAS_WORKSPACE_CONFIG.
/// Source  torch.use_deterministic_algorithms; the rest is Settings::seed and the keyed order of
///         the data.
template <>
struct Audit<BitExact> {
  FRUGAL_DIAGNOSTIC(
      not_fp32,
      "frugal: Audit<BitExact> needs FP32: products in fewer bits depend on the machine. "
      "Remove Precision or Audit.");

  using kind = kinds::audit;
  using listens = list<on::fit_begin, on::epoch_begin, on::epoch_end, on::fit_end>;
  using conflicts = list<conflict<kinds::precision, not_fp32>>;

  static constexpr About about{Term::none,
                               "deterministic kernels, and one hash of the weights per epoch"};

  Outcome<std::vector<AuditMark>> outcome{};  ///< set by fit

  /// The marks of the last completed fit, including those before a resume: the initial weights,
  /// those at the end of each epoch, and those at the end of the run.
  std::vector<AuditMark> marks() const {
    return outcome.get() == nullptr ? std::vector<AuditMark>{} : *outcome.get();
  }

  class State {
   public:
    explicit State(Audit const& settings) : outcome_(&settings.outcome) {}

    void on_fit_begin(FitBegin& phase) {
      if (phase.settings().device.is_cuda()) {
        detail::require_workspace(std::getenv("CUBLAS_WORKSPACE_CONFIG"));
      }
      outcome_->clear();
      deterministic_.emplace();
    }

    void on_epoch_begin(EpochBegin& phase) {
      // A resumed run already has its first mark.
      if (marks_.empty()) mark(phase);
    }
    void on_epoch_end(EpochEnd& phase) { mark(phase); }

    void on_fit_end(FitEnd& phase) {
      std::vector<AuditMark> all = marks_;
      // The run may continue after an end within an epoch, so that end is no mark.
      if (all.empty() || all.back().step != phase.counters().step) {
        all.push_back(mark_of(phase));
        if (ended_at_ != phase.counters().step) record(phase, all.back());
        ended_at_ = phase.counters().step;
      }
      outcome_->set(std::move(all));
    }

    template <class Archive>
    void persist(Archive& archive) {
      std::vector<std::uint64_t> flat;
      for (AuditMark const& each : marks_) {
        flat.insert(flat.end(), {each.epoch, each.step, each.hash});
      }
      archive("marks", flat);
      archive("ended_at", ended_at_);
      std::int64_t threads = at::get_num_threads();
      archive("threads", threads);
      if (!Archive::loading) return;
      marks_.clear();
      for (std::size_t i = 0; i + 2 < flat.size(); i += 3) {
        marks_.push_back({flat[i], flat[i + 1], flat[i + 2]});
      }
      threads_before_ = threads;
    }

   private:
    static AuditMark mark_of(Phase const& phase) {
      Counters const& now = phase.counters();
      return {now.epoch, now.step, hash_of_tensors(base_module(phase.module()))};
    }
    static void record(Phase const& phase, AuditMark const& mark) {
      phase.record({"audit", {{"hash", hex_of(mark.hash)}}});
    }

    void mark(Phase const& phase) {
      marks_.push_back(mark_of(phase));
      record(phase, marks_.back());
      if (threads_before_ && *threads_before_ != at::get_num_threads()) {
        phase.warn("Audit: the run began with " + std::to_string(*threads_before_) +
                   " threads and resumed with " + std::to_string(at::get_num_threads()) +
                   "; sums over threads may differ in their last bits");
      }
    }

    Outcome<std::vector<AuditMark>> const* outcome_;
    std::optional<detail::Deterministic> deterministic_;
    std::vector<AuditMark> marks_;
    std::optional<std::uint64_t> ended_at_;
    std::optional<std::int64_t> threads_before_;
  };
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/report/audit.ipp>
#endif
