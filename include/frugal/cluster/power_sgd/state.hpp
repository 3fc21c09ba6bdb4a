// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <frugal/cluster/agreement/window_message.hpp>
#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/power_sgd.hpp>
#include <frugal/cluster/replicate/ring_gradients.hpp>
#include <frugal/cluster/replicate/state.hpp>
#include <frugal/cluster/shard/sharded_parameters.hpp>
#include <frugal/cluster/tensors/flat_tensors.hpp>
#include <frugal/core/libtorch/finite.hpp>
#include <frugal/core/libtorch/low_rank.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/core/run/window_phases.hpp>
#include <frugal/core/state/tensor_part.hpp>
#include <frugal/error.hpp>

namespace frugal::detail {

/// Makes the columns of a matrix with at least as many rows orthonormal: by the Gram-Schmidt process
/// where there are one or two, as PyTorch's powerSGD_hook, otherwise by Householder's. A column of
/// zeros stays one in the Gram-Schmidt process, where PyTorch divides it by zero.
void orthogonalize(at::Tensor const& columns, double epsilon);

/// The seeds that PyTorch's powerSGD_hook draws: numpy.random.RandomState(seed).randint(10**9), which
/// takes 30 bits of each number of a Mersenne twister until they are in range.
class FactorSeeds {
 public:
  explicit FactorSeeds(std::uint32_t seed) : engine_(seed) {}
  std::uint64_t next() {
    constexpr std::uint64_t bits = (std::uint64_t{1} << 30) - 1;
    for (;;) {
      std::uint64_t const value = engine_() & bits;
      if (value < 1'000'000'000) return value;
    }
  }

 private:
  std::mt19937 engine_;
};

/// What Wire<PowerSGD<R>> keeps from step to step, by parameter: the error of this process, in units
/// of the mean gradient, and the factor Q, which is the same in all.
///
/// A checkpoint has the errors of each process, which send theirs to the first one tensor by tensor, or
/// their mean. The sum over processes of gradients and errors is all that later steps depend on, so
/// another number of processes goes on with the mean in each.
class PowerSGDMemory {
 public:
  struct One {
    at::Tensor error{};  ///< as the parameter
    at::Tensor q{};      ///< [columns, rank]
  };

  PowerSGDMemory(Communicator& all, PowerSGDSettings const& settings)
      : all_(all), saved_(settings.saved_errors), seed_(settings.seed), seeds_(settings.seed) {}

  /// Before the state is loaded.
  void name(Parameters const& parameters) {
    names_.clear();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      names_[parameters.tensors[i].unsafeGetTensorImpl()] = parameters.names[i];
      sizes_[parameters.names[i]] = parameters.tensors[i].sizes().vec();
    }
  }

  One& of(at::Tensor const& parameter) { return all_of_them_[name_of(parameter)]; }

  bool has_error(at::Tensor const& parameter) const {
    auto const found = all_of_them_.find(name_of(parameter));
    return found != all_of_them_.end() && found->second.error.defined();
  }

  /// Moves what was loaded to the device, and into the order in memory, of `like`.
  void place(std::vector<at::Tensor> const& parameters, std::vector<at::Tensor> const& like);

  /// The mean of the processes' errors of a parameter, which are then forgotten. All call it at the
  /// same moments.
  at::Tensor take_mean(at::Tensor const& parameter) {
    return mean(std::exchange(of(parameter).error, at::Tensor()));
  }

  /// Of the next random factors.
  std::uint64_t next_seed() {
    ++draws_;
    return seeds_.next();
  }

  template <class Archive>
  void persist(Archive& archive) {
    archive("draws", draws_);
    std::vector<std::string> names;
    for (auto const& [name, one] : all_of_them_) names.push_back(name);
    archive("parameters", names);
    std::uint64_t processes = 1;  // whose errors it has
    if constexpr (Archive::loading) {
      archive("processes", processes);
      all_of_them_.clear();
      seeds_ = FactorSeeds(seed_);
      for (std::uint64_t i = 0; i < draws_; ++i) seeds_.next();
      for (std::string const& name : names) {
        archive.scope(name, [&](auto& inner) { load(inner, name, processes); });
      }
    } else {
      // Otherwise it is a snapshot that each process takes of its own.
      bool const together = archive.whole && all_.size() > 1;
      if (together && saved_ == SavedErrors::each) {
        processes = static_cast<std::uint64_t>(all_.size());
      }
      archive("processes", processes);
      for (std::string const& name : names) {
        archive.scope(name, [&](auto& inner) {
          One& one = all_of_them_[name];
          inner("q", one.q);
          save(inner, one.error, together, processes);
        });
      }
    }
  }

 private:
  static std::string error_of(std::uint64_t process) { return "error." + std::to_string(process); }

  std::string const& name_of(at::Tensor const& parameter) const {
    return names_.at(parameter.unsafeGetTensorImpl());
  }

  at::Tensor mean(at::Tensor error) {
    if (all_.size() == 1) return error;
    if (auto const work = all_.start_sum(error)) all_.complete(work, "the sum of errors");
    return error.div_(all_.size());
  }

  template <class Archive>
  void save(Archive& archive, at::Tensor const& error, bool together, std::uint64_t processes) {
    constexpr char const* what = "the errors of a checkpoint";
    if (!error.defined() || !together) {
      for (std::uint64_t i = 0; i < processes; ++i) archive(error_of(i), error);
      return;
    }
    if (processes == 1) {
      archive(error_of(0), mean(error.clone()));
      return;
    }
    at::Tensor const host = error.cpu().contiguous();
    if (all_.rank() != 0) return all_.send_to_first(host, what);
    archive(error_of(0), host);
    for (int rank = 1; rank < all_.size(); ++rank) {
      at::Tensor const other = at::empty_like(host);
      all_.receive(other, rank, what);
      archive(error_of(static_cast<std::uint64_t>(rank)), other);
    }
  }

  template <class Archive>
  void load(Archive& archive, std::string const& name, std::uint64_t processes) {
    One& one = all_of_them_[name];
    archive("q", one.q);
    auto const read = [&](std::uint64_t process) {
      at::Tensor error;
      archive(error_of(process), error);
      if (error.defined()) require_size(name, error);
      return error;
    };
    if (processes == static_cast<std::uint64_t>(all_.size())) {
      one.error = read(static_cast<std::uint64_t>(all_.rank()));
      return;
    }
    for (std::uint64_t i = 0; i < processes; ++i) {
      at::Tensor const other = read(i);
      if (!other.defined()) return;
      if (i == 0) {
        one.error = other;
      } else {
        one.error.add_(other);
      }
    }
    if (processes > 1) one.error.div_(static_cast<double>(processes));
  }

  void require_size(std::string const& name, at::Tensor const& error) const;

  Communicator& all_;
  SavedErrors saved_;
  std::uint32_t seed_;
  FactorSeeds seeds_;
  std::uint64_t draws_ = 0;
  std::map<at::TensorImpl const*, std::string> names_;
  std::map<std::string, std::vector<std::int64_t>> sizes_;
  std::map<std::string, One> all_of_them_;  ///< by name of the parameter
};

/// Matrices of gradients that are summed over processes as two factors, P and Q.
///
/// A process has the matrix X = mean gradient of its own + error. With an orthonormal Q, the same in
/// all:  P = sum of X Q, orthonormalized;  Q = mean of X' P;  the gradient is P Q', the error X - P Q'.
class FactoredSum {
 public:
  struct Matrix {
    std::size_t index = 0;  ///< of the parameter
    at::Tensor parameter{};
    LowRank shape{};
    at::Tensor place{};     ///< of its gradient, as the parameter
    at::Tensor gradient{};  ///< [rows, columns]: the memory of the place
  };

  FactoredSum(Communicator& all, PowerSGDSettings const& settings, PowerSGDMemory& memory)
      : all_(all), settings_(settings), memory_(memory) {}

  /// `matrices`: index, parameter and shape, in the order of the parameters.
  void lay_out(std::vector<Matrix> matrices);
  std::vector<Matrix> const& matrices() const { return matrices_; }

  /// The largest absolute value in the gradients of this process; NaN if there is one.
  double largest(std::vector<bool> const& has) const;

  /// Of a window that is not finite: gradients that are not, in all processes; errors and factors stay.
  void spoil() const {
    for (Matrix const& each : matrices_) {
      each.gradient.fill_(std::numeric_limits<float>::quiet_NaN());
    }
  }

  /// Makes the gradients the sums over processes. `has`: which have one here; `anywhere`: in any process;
  /// `weight`: what turns a mean into such a sum. The numbers must be such that nothing overflows.
  void sum(std::vector<bool> const& has, std::vector<bool> const& anywhere, double weight);

 private:
  /// X, in the memory of the error; without errors in that of the gradient.
  at::Tensor x_of(Matrix const& matrix, bool has, double to_mean);

  at::Tensor& factor_of(Matrix const& matrix) { return memory_.of(matrix.parameter).q; }

  /// Random factors where there are none from the step before: the same in all processes, and those of
  /// PyTorch's hook with one bucket.
  void draw_factors();

  /// [size, rank] of each, one after the other in `flat`.
  static std::vector<at::Tensor> views_of(at::Tensor const& flat,
                                          std::vector<Matrix const*> const& active,
                                          std::int64_t LowRank::* size);
  void add_up(at::Tensor const& flat, std::vector<at::Tensor> const& views) {
    std::int64_t count = 0;
    for (at::Tensor const& each : views) count += each.numel();
    at::Tensor used = flat.narrow(0, 0, count);
    if (auto const work = all_.start_sum(used)) all_.complete(work, "the sum of factors");
  }

  static at::Tensor as_matrix(at::Tensor const& place, LowRank const& shape) {
    return in_memory_order(place).view({shape.rows, shape.columns});
  }

  /// From the last parameter on, and those of one shape after each other: the order in which PyTorch's
  /// hook draws factors.
  void sort_as_torch();

  Communicator& all_;
  PowerSGDSettings settings_;
  PowerSGDMemory& memory_;
  std::vector<Matrix> matrices_;
  std::optional<FlatTensors> flat_;  ///< the gradients
  at::Tensor p_, q_;                 ///< all P and all Q, as they travel
};

/// A window's gradients, of which matrices travel as two factors (PowerSGD). All others are those of
/// RingGradients, with the window's message: it has the weights of all processes, and errors are in
/// units of the mean gradient, so that they mean the same in every window and for every number of
/// processes. So the factors are computed after that exchange.
class PowerSGDGradients {
 public:
  struct Settings {
    RingGradients::Settings ring{};
    PowerSGDSettings power{};
    std::int64_t rank = 1;
  };

  PowerSGDGradients(Communicator& all, Settings const& settings)
      : all_(all),
        settings_(settings),
        plain_(all, settings.ring),
        memory_(all, settings.power),
        factored_(all, settings.power, memory_) {}
  PowerSGDGradients(PowerSGDGradients const&) = delete;
  PowerSGDGradients& operator=(PowerSGDGradients const&) = delete;
  ~PowerSGDGradients() = default;

  PowerSGDMemory& memory() { return memory_; }
  /// The memory was loaded.
  void forget() { parameters_.clear(); }

  /// Before a window.
  void at_step(std::uint64_t step) {
    compresses_now_ = all_.size() > 1 && step >= settings_.power.start_step;
  }

  void begin(std::vector<at::Tensor> const& parameters, ShardedParameters const* sharded) {
    if (!fits(parameters)) make(parameters);
    has_.assign(parameters_.size(), false);
    std::size_t const words =
        WindowMessage(settings_.ring.micro_batches, parameters_.size()).size();
    plain_.begin(plain_parameters_, sharded, words + (compresses_ ? 1 : 0));
  }
  void before(bool is_last, double const& unit) { plain_.before(is_last, unit); }
  void after();

  std::vector<bool> const& has() {
    for (std::size_t k = 0; k < plain_indices_.size(); ++k)
      has_[plain_indices_[k]] = plain_.has()[k];
    return has_;
  }

  void begin_rest() { plain_.begin_rest(); }

  /// With the message travels the largest absolute value in the matrices of this process, so that all
  /// find a window that is not finite before anything of it gets into the errors.
  at::Tensor exchange(at::Tensor const& message);

  /// After the message. `weight`: of the losses of all processes; `scale`: what they were multiplied
  /// by; `has`: which parameters have got a gradient in any process.
  void weigh(double weight, double scale, std::vector<bool> const& has) {
    weight_ = weight * scale;
    has_anywhere_ = has;
  }

  std::vector<at::Tensor> sum(std::vector<bool> const& counts);
  std::vector<at::Tensor> own_sum(std::vector<bool> const& counts, ShardedParameters& sharded) {
    return sharded.parts_of(sum(counts));
  }

 private:
  /// Whether no sum of FactoredSum can overflow: of rows, of columns, and over processes.
  bool is_bounded() const {
    constexpr double limit = std::numeric_limits<float>::max() / 1e12;
    return largest_ <= limit && largest_ * static_cast<double>(all_.size()) / weight_ <= limit;
  }

  /// Errors of parameters that are not compressed, because a run goes on in one process or with other
  /// settings: their mean is what the gradients so far lack.
  void return_errors() {
    std::erase_if(owed_, [&](std::size_t i) {
      if (has_anywhere_[i]) places_[i].add_(memory_.take_mean(parameters_[i]), weight_);
      return has_anywhere_[i];
    });
  }

  bool fits(std::vector<at::Tensor> const& parameters) const;
  void make(std::vector<at::Tensor> const& parameters);

  /// The factors are of one type and device.
  bool is_compressed(at::Tensor const& parameter) const {
    return compresses_ && parameter.scalar_type() == at::kFloat &&
           parameter.device() == parameters_.back().device() &&
           LowRank::of(parameter, settings_.rank).pays(settings_.power.min_compression_rate);
  }

  Communicator& all_;
  Settings settings_;
  RingGradients plain_;
  PowerSGDMemory memory_;
  FactoredSum factored_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::ScalarType> types_;
  std::vector<c10::Device> devices_;
  std::vector<at::Tensor> places_;            ///< of the sums, for each parameter
  std::vector<at::Tensor> plain_parameters_;  ///< those whose gradients travel as they are
  std::vector<std::size_t> plain_indices_;
  std::vector<std::size_t> owed_;  ///< of those, the ones that have errors from when they were not
  std::vector<bool> has_;          ///< a gradient here, in this window
  std::vector<bool> has_anywhere_;
  double weight_ = 0;   ///< of the window, times what losses were multiplied by
  double largest_ = 0;  ///< absolute value in the matrices of all processes
  bool compresses_now_ = false;
  bool compresses_ = false;
};

/// The State of Replicate with Wire<PowerSGD<R>>. It keeps errors and factors from step to step.
template <class Context, bool shards, class BatchNorms>
class PowerSGDState : public ReplicateState<Context, PowerSGDGradients, shards, BatchNorms> {
  using Base = ReplicateState<Context, PowerSGDGradients, shards, BatchNorms>;

 public:
  using dispensable = void;  // a run may go on with another wire, or get this one later

  PowerSGDState(Communicator& all, MicroBatches own, char const* name,
                PowerSGDGradients::Settings const& settings)
      : Base(all, own, name, {}, settings), settings_(settings.power), rank_(settings.rank) {}

  void on_fit_begin(FitBegin& phase) {
    require_power_sgd(settings_);
    // Processes with other ones would send other factors, or none.
    auto const compare = [&](char const* name, auto value) {
      phase.compare_in_processes(std::string("Wire<PowerSGD>::") + name,
                                 static_cast<double>(value));
    };
    phase.compare_in_processes("Wire<PowerSGD>::rank", static_cast<double>(rank_));
    compare("start_step", settings_.start_step);
    compare("min_compression_rate", settings_.min_compression_rate);
    compare("error_feedback", settings_.error_feedback);
    compare("warm_start", settings_.warm_start);
    compare("orthogonalization_epsilon", settings_.orthogonalization_epsilon);
    compare("seed", settings_.seed);
    compare("saved_errors", settings_.saved_errors);
    Base::on_fit_begin(phase);
  }

  template <class Next>
  void around_fit(FitRun& phase, Next&& next) {
    this->gradients_.memory().name(phase.parameters());
    Base::around_fit(phase, [&] {
      // All processes take part in a save: each has errors of its own.
      WholeTensor& whole = phase.run_state().together.whole_tensor;
      if (!whole && this->all_.size() > 1) {
        whole = [](at::Tensor const& mine, TensorPart const&) { return mine; };
      }
      next();
    });
  }

  template <class Next>
  void around_micro_batch(MicroBatchRun const& phase, Next&& next) {
    this->gradients_.at_step(phase.counters().step);
    Base::around_micro_batch(phase, std::forward<Next>(next));
  }
  void join(SharedWindow& phase) {
    this->gradients_.at_step(phase.counters().step);
    Base::join(phase);
  }

  template <class Archive>
  void persist(Archive& archive) {
    this->gradients_.memory().persist(archive);
    if constexpr (Archive::loading) this->gradients_.forget();
  }

 private:
  PowerSGDSettings settings_;
  std::int64_t rank_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/cluster/power_sgd/state.ipp>
#endif
