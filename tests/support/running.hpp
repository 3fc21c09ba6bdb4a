// SPDX-License-Identifier: Apache-2.0
// Policies for tests, and small modules to train. Shapes: N samples, B in a batch, F features, H
// hidden units, C classes.
#pragma once

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/record_function.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <cstdint>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/core/state/state_writer.hpp>
#include <frugal/data/tensor_dataset.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/recompute.hpp>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "reference.hpp"

namespace frugal_test::support {

/// Linear, ReLU, Linear, with optional dropout and normalization. Always the same initial weights.
struct Mlp : torch::nn::Module {
  struct Shape {
    std::int64_t features = 6, hidden = 8, classes = 3;
    double dropout = 0.0;
    bool norm = false;
    bool tied = false;  ///< the first weight has a second name, "again"
  };

  Mlp() : Mlp(Shape{}) {}
  explicit Mlp(Shape const& shape)
      : first(register_module("first", torch::nn::Linear(shape.features, shape.hidden))),
        second(register_module("second", torch::nn::Linear(shape.hidden, shape.classes))),
        dropout(register_module("dropout", torch::nn::Dropout(shape.dropout))) {
    if (shape.norm) norm = register_module("norm", torch::nn::BatchNorm1d(shape.hidden));
    at::NoGradGuard const no_gradients;
    std::uint32_t which = 0;
    for (at::Tensor& parameter : parameters()) {
      parameter.copy_(table(parameter.sizes().vec(), 90, which++));
    }
    if (shape.tied) register_parameter("again", first->weight);
  }

  /// [B, F] to [B, C], one layer after the other, so that it can be segmented.
  at::Tensor forward(at::Tensor const& x_BF) {
    std::vector<std::shared_ptr<torch::nn::Module>> layers{first.ptr()};
    if (norm) layers.push_back(norm.ptr());
    layers.insert(layers.end(), {dropout.ptr(), second.ptr()});
    return frugal::each(layers, x_BF, [](auto const& layer, at::Tensor const& h) {
      if (auto* linear = layer->template as<torch::nn::Linear>()) return linear->forward(h);
      if (auto* normal = layer->template as<torch::nn::BatchNorm1d>()) return normal->forward(h);
      return layer->template as<torch::nn::Dropout>()->forward(h.relu());
    });
  }

  torch::nn::Linear first, second;
  torch::nn::Dropout dropout;
  torch::nn::BatchNorm1d norm{nullptr};
};

/// N samples of F features, with classes from a linear rule.
inline frugal::Batch samples(std::int64_t n, std::uint32_t stream = 91, std::int64_t features = 6,
                             std::int64_t classes = 3) {
  at::Tensor const data_NF = table({n, features}, stream, 0);
  return {data_NF, at::matmul(data_NF, table({features, classes}, 91, 1)).argmax(1)};
}

/// Copies of all parameters and buffers, by name.
inline std::map<std::string, at::Tensor> tensors_of(torch::nn::Module const& module) {
  std::map<std::string, at::Tensor> all;
  for (auto const& item : module.named_parameters()) {
    all.emplace(item.key(), item.value().detach().clone());
  }
  for (auto const& item : module.named_buffers()) {
    all.emplace(item.key(), item.value().detach().clone());
  }
  return all;
}

inline bool same_bits(std::map<std::string, at::Tensor> const& a,
                      std::map<std::string, at::Tensor> const& b) {
  frugal::StateDict left{.values = {}, .tensors = a};
  frugal::StateDict right{.values = {}, .tensors = b};
  return left == right;
}

/// How often each operator is dispatched in this thread while `body` runs.
template <class Body>
std::map<std::string, int> operators_of(Body&& body) {
  static std::mutex guard;
  static std::map<std::string, int> seen;  // on a device, backward runs in its own thread
  seen.clear();
  auto const handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback([](at::RecordFunction const& function)
                                     -> std::unique_ptr<at::ObserverContext> {
        std::scoped_lock const lock(guard);
        ++seen[function.name()];
        return nullptr;
      }).scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
  body();
  at::removeCallback(handle);
  return seen;
}

/// Kinds of the test policies; each runs after all of frugal's own.
namespace kinds {
struct spy : frugal::optional_kind {
  static constexpr std::string_view name = "test.Spy";
};
struct restore : frugal::optional_kind {
  static constexpr std::string_view name = "test.Restore";
};
}  // namespace kinds

using everything =
    frugal::list<frugal::kinds::recompute, frugal::kinds::activations, frugal::kinds::precision,
                 frugal::kinds::accumulate, frugal::kinds::clip, frugal::kinds::optimizer,
                 frugal::kinds::schedule, frugal::kinds::validate, frugal::kinds::checkpoint,
                 frugal::kinds::early_stop, frugal::kinds::log, frugal::kinds::progress,
                 frugal::kinds::dry_run, frugal::kinds::spot>;

/// What a Spy saw.
struct Seen {
  std::vector<double> losses;          ///< of each micro-batch
  std::vector<double> weights;         ///< likewise
  std::vector<double> rates;           ///< the factor at each update
  std::vector<double> gradient_norms;  ///< at each update, after clipping
  std::vector<frugal::Validation> validations;
  std::vector<std::uint64_t> validated_at;  ///< steps
  std::vector<double> epoch_losses;
};

/// Records what happens, and calls back after each step.
struct Spy {
  using kind = kinds::spy;
  using listens = frugal::list<frugal::on::loss, frugal::on::update, frugal::on::step,
                               frugal::on::validated, frugal::on::epoch_end>;
  using after = everything;

  Seen* seen = nullptr;
  std::function<void(frugal::Counters const&)> each_step{};

  class State {
   public:
    using transient = void;
    explicit State(Spy const& spy) : seen_(spy.seen), each_step_(spy.each_step) {}

    void on_loss(frugal::LossReady& phase) {
      if (!seen_) return;
      seen_->losses.push_back(phase.loss.value.template item<double>());
      seen_->weights.push_back(*phase.loss.weight);
    }
    void on_update(frugal::Update& phase) {
      if (!seen_) return;
      seen_->rates.push_back(phase.learning_rate_factor());
      double sum = 0;
      for (at::Tensor const& gradient : phase.gradients().tensors()) {
        sum += gradient.to(at::kDouble).square().sum().template item<double>();
      }
      seen_->gradient_norms.push_back(std::sqrt(sum));
    }
    void on_step(frugal::Step& phase) {
      if (each_step_) each_step_(phase.counters());
    }
    void on_validated(frugal::Validated& phase) {
      if (!seen_) return;
      seen_->validations.push_back({phase.counters().epoch, phase.counters().step, phase.metrics});
      seen_->validated_at.push_back(phase.counters().step);
    }
    void on_epoch_end(frugal::EpochEnd& phase) {
      if (seen_) seen_->epoch_losses.push_back(phase.mean_loss());
    }

   private:
    Seen* seen_;
    std::function<void(frugal::Counters const&)> each_step_;
  };
};

/// Everything that a run needs to continue: the contents of a checkpoint.
struct Frozen {
  std::map<std::string, at::Tensor> module;
  at::Tensor generator;
  frugal::StateDict run;
};

template <class Phase>
Frozen freeze(Phase& phase) {
  Frozen frozen;
  frozen.module = tensors_of(frugal::base_module(phase.module()));
  frozen.generator = at::detail::getDefaultCPUGenerator().get_state();
  frugal::StateWriter writer(frozen.run);
  phase.persist(writer);
  return frozen;
}

inline void put_back(torch::nn::Module& module, std::map<std::string, at::Tensor> const& saved) {
  at::NoGradGuard const no_gradients;
  for (auto const& item : module.named_parameters()) {
    at::Tensor target = item.value();
    target.copy_(saved.at(item.key()));
  }
  for (auto const& item : module.named_buffers()) {
    at::Tensor target = item.value();
    target.copy_(saved.at(item.key()));
  }
}

/// A checkpoint in memory: takes a Frozen after given steps and at each end of an epoch, and
/// resumes from one when a run begins. Differs from the real one only in writing no files.
struct Resume {
  using kind = kinds::restore;
  using listens = frugal::list<frugal::on::fit_begin, frugal::on::step, frugal::on::epoch_end>;
  using after = frugal::concat<everything, frugal::list<kinds::spy>>;

  Frozen const* from = nullptr;
  std::map<std::uint64_t, Frozen>* after_step = nullptr;
  std::map<std::uint64_t, Frozen>* after_epoch = nullptr;
  std::uint64_t stop_at = std::numeric_limits<std::uint64_t>::max();  ///< steps

  class State {
   public:
    using transient = void;
    explicit State(Resume const& settings)
        : from_(settings.from),
          after_step_(settings.after_step),
          after_epoch_(settings.after_epoch),
          stop_at_(settings.stop_at) {}

    void on_fit_begin(frugal::FitBegin& phase) {
      if (!from_) return;
      put_back(frugal::base_module(phase.module()), from_->module);
      auto generator = at::detail::getDefaultCPUGenerator();
      generator.set_state(from_->generator);
      frugal::StateReader reader(from_->run);
      phase.persist(reader);
    }
    frugal::flow on_step(frugal::Step& phase) {
      std::uint64_t const step = phase.counters().step;
      if (after_step_) after_step_->insert_or_assign(step, freeze(phase));
      return step >= stop_at_ ? frugal::flow::stop : frugal::flow::proceed;
    }
    void on_epoch_end(frugal::EpochEnd& phase) {
      if (!after_epoch_) return;
      after_epoch_->insert_or_assign(phase.counters().epoch, freeze(phase));
    }

   private:
    Frozen const* from_;
    std::map<std::uint64_t, Frozen>* after_step_;
    std::map<std::uint64_t, Frozen>* after_epoch_;
    std::uint64_t stop_at_;
  };
};

}  // namespace frugal_test::support
