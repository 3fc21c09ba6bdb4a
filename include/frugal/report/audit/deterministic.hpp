// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/Context.h>

#include <type_traits>
#include <vector>

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

#ifndef FRUGAL_COMPILED
#include <frugal/report/audit/deterministic.ipp>
#endif
