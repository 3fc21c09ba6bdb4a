// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <frugal/base/hash.hpp>
#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/pipeline/layers.hpp>
#include <frugal/cluster/pipeline/links.hpp>
#include <frugal/cluster/pipeline/schedule.hpp>
#include <frugal/cluster/pipeline/stage_gradients.hpp>
#include <frugal/core/loop/executor.hpp>
#include <frugal/core/run/failure.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/core/run/window_phases.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/source.hpp>
#include <frugal/core/source/tensor_identity.hpp>
#include <frugal/error.hpp>

namespace frugal::detail {

/// A number that batches of the same shapes share.
template <class B>
std::uint64_t shape_key(B const& batch) {
  std::vector<std::int64_t> numbers;
  batch_tensors(batch, [&](at::Tensor const& tensor) {
    if (!tensor.defined()) {
      numbers.push_back(-1);
      return;
    }
    numbers.push_back(static_cast<std::int64_t>(tensor.scalar_type()));
    numbers.push_back(tensor.dim());
    for (std::int64_t const size : tensor.sizes()) numbers.push_back(size);
  });
  return Hash::of(std::as_bytes(std::span(numbers)));
}

/// Executes a window of a recipe with Pipeline: this process's passes, in the order of its schedule.
/// The processes of a copy read all of its batches; the loss is the last stage's, with all hooks of a pass.
template <class Passes>
class PipelineExecutor {
  using Context = typename Passes::Context;
  using Batch = typename Passes::Batch;

 public:
  explicit PipelineExecutor(Passes& passes) : passes_(passes) {}

  template <class Source>
  void set_up(Source&, Cursor) {
    compared_.reset();
  }

  template <class Source>
  StepOutcome train(Source& source) {
    batches_.clear();
    keys_.clear();
    for (int k = 0; k < passes_.batches(); ++k) {
      auto batch = source.next();
      if (!batch) break;
      keys_.push_back(shape_key(*batch));
      batches_.push_back(std::move(*batch));
    }
    passes_.open();
    window();
    batches_.clear();
    return passes_.empty() ? StepOutcome::nothing : passes_.finish();
  }

  /// Unused: an optimizer that reevaluates does not compile with several processes.
  static at::Tensor reevaluate() { return {}; }

 private:
  using Place = std::pair<int, int>;  ///< stage, micro-batch

  /// A micro-batch between its two passes through a stage but the last.
  struct Live {
    at::Tensor input{};
    at::Tensor output{};
    LinkMessage sent{};
    std::optional<LinkMessage> gradient{};
  };

  /// For the duration of a forward pass, also one that throws.
  class [[nodiscard]] Installed {
   public:
    explicit Installed(StagePass& pass) : before_(std::exchange(stage_pass, &pass)) {}
    Installed(Installed const&) = delete;
    Installed& operator=(Installed const&) = delete;
    ~Installed() { stage_pass = before_; }

   private:
    StagePass* before_;
  };

  auto& state() { return passes_.run().engine->template provider<service::share>(); }

  void window() {
    layers_ = &state().layers();
    Communicator& all = layers_->processes();
    all.at_step(passes_.run().counters().step);
    if (!links_) links_.emplace(all, passes_.run().device, layers_->stages());
    links_->agree(own_window());
    if (batches_.empty()) return links_->settle();
    live_.clear(), unanswered_.clear(), begun_.clear();
    gradients_ = &state().gradients();
    gradients_->begin_window(passes_.run().parameters);
    order_ = pipeline_order(all.rank(), all.size(), static_cast<int>(batches_.size()),
                            layers_->stages() / all.size());
    for (std::size_t i = 0; i < order_.size(); ++i) {
      int const stage = order_[i].chunk * all.size() + all.rank();
      if (order_[i].is_forward) {
        forward(stage, order_[i].micro_batch, i);
      } else if (stage != last()) {
        backward(stage, order_[i].micro_batch);
      }
    }
    finish_gradient();
    for (LinkMessage const& each : unanswered_) links_->finish(each);
    links_->settle();
  }

  StageWindow own_window() {
    Counters const& now = passes_.run().counters();
    StageWindow own{.at = {.epoch = now.epoch, .position = now.position, .step = now.step},
                    .micro_batches = keys_.size(),
                    .shapes = Hash::of(std::as_bytes(std::span(keys_)))};
    if (batches_.empty() || compared_ == now.epoch) return own;
    compared_ = now.epoch;
    TensorHash values;
    batch_tensors(batches_.front(), [&](at::Tensor const& tensor) { values.add(tensor); });
    own.values = values.digest();
    return own;
  }

  int last() const { return layers_->stages() - 1; }
  std::uint64_t like(int micro_batch) const { return keys_[static_cast<std::size_t>(micro_batch)]; }

  void forward(int stage, int k, std::size_t index) {
    StagePass pass{.stage = stage,
                   .key = state().key_of_own(passes_.run(), static_cast<std::uint64_t>(k))};
    if (stage != 0) {
      std::optional<LinkMessage> begun;
      if (auto const found = begun_.extract(Place{stage, k})) begun = found.mapped();
      pass.input = links_->take(std::move(begun), layers_->rank_of(stage - 1), stage, like(k));
    }
    begin_next(index + 1);
    at::Tensor const input = pass.input;
    Batch& batch = batches_[static_cast<std::size_t>(k)];
    at::manual_seed(pass.key);
    Installed const installed(pass);
    if (stage == last()) {
      auto& run = passes_.run();
      MicroBatchRun phase(run, k == 0, k + 1 == static_cast<int>(batches_.size()));
      auto body = [&] { passes_.template pass<HookScope::all>(batch); };
      run.engine->template surround<around::micro_batch>(phase, body);
      if (!pass.ran) refuse_without_layers();
      double const unit = passes_.window().take_unit();
      gradients_->keep(stage, unit);
      send_gradient(input, stage, unit);
      return;
    }
    batch_to(batch, passes_.run().device);
    try {
      passes_.forward(batch, /*training=*/true);
    } catch (StageEnd const&) {
      // The objective is not evaluated here.
    }
    if (!pass.output.defined()) refuse_without_layers();
    int const next = layers_->rank_of(stage + 1);
    Live live{.input = input, .output = std::move(pass.output)};
    live.sent = links_->send(live.output, next, stage + 1, like(k));
    if (live.output.requires_grad()) {
      live.gradient = links_->start_gradient(live.output, next, stage + 1);
    }
    live_.emplace(Place{stage, k}, std::move(live));
  }

  void backward(int stage, int k) {
    Live live = std::move(live_.extract(Place{stage, k}).mapped());
    if (!live.gradient) {
      gradients_->keep(stage, 1);
      unanswered_.push_back(std::move(live.sent));
      return;
    }
    auto const came =
        links_->await_gradient(*live.gradient, live.output, layers_->rank_of(stage + 1));
    links_->finish(live.sent);  // it has arrived, or there would be no gradient
    if (!came.tensor.defined()) {
      gradients_->keep(stage, 1);
      send_gradient(live.input, stage, 1);
      return;
    }
    guarded("the backward pass", passes_.run().counters(),
            [&] { torch::autograd::backward({live.output}, {came.tensor}); });
    gradients_->keep(stage, came.unit);
    send_gradient(live.input, stage, came.unit);
  }

  /// Begins to receive the input of the next forward pass, while this one goes on.
  void begin_next(std::size_t from) {
    Communicator const& all = layers_->processes();
    for (std::size_t i = from; i < order_.size(); ++i) {
      int const stage = order_[i].chunk * all.size() + all.rank();
      int const k = order_[i].micro_batch;
      if (!order_[i].is_forward || stage == 0) continue;
      if (begun_.contains(Place{stage, k})) return;
      auto begun = links_->start(layers_->rank_of(stage - 1), stage, like(k));
      if (begun) begun_.emplace(Place{stage, k}, std::move(*begun));
      return;
    }
  }

  /// The gradient of a stage's input goes to the stage before it.
  void send_gradient(at::Tensor const& input, int stage, double unit) {
    if (stage == 0 || !input.requires_grad()) return;
    at::NoGradGuard const no_gradients;
    finish_gradient();
    int const before = layers_->rank_of(stage - 1);
    // Undefined for a loss of weight 0, which has no backward pass.
    gradient_sent_ = links_->send_gradient(input, input.grad(), unit, before, stage);
  }
  /// The process before this one receives each as soon as it comes, whatever it computes.
  void finish_gradient() {
    if (gradient_sent_.work) links_->finish(gradient_sent_);
    gradient_sent_ = {};
  }

  [[noreturn]] static void refuse_without_layers() {
    throw ModuleError({.what = "the objective does not call the layers that Pipeline has divided",
                       .where = "Pipeline",
                       .why = "a stage begins and ends in the forward pass of the module",
                       .fix =
                           "Call the module in the objective; a ModuleList by frugal::each in its "
                           "forward."});
  }

  Passes& passes_;
  DividedLayers* layers_ = nullptr;
  std::optional<StageLinks> links_;
  std::vector<Batch> batches_;
  std::vector<std::uint64_t> keys_;        ///< of the batches' shapes
  std::optional<std::uint64_t> compared_;  ///< the epoch whose first batch was compared
  std::vector<PipelineAction> order_;
  std::map<Place, Live> live_;
  std::map<Place, LinkMessage> begun_;  ///< inputs that are on their way
  std::vector<LinkMessage> unanswered_;
  LinkMessage gradient_sent_;
  StageGradients* gradients_ = nullptr;
};

}  // namespace frugal::detail
