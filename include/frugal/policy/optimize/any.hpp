// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>
#include <torch/serialize.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/run/learning_rate.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/optimize/groups.hpp>
#include <frugal/policy/optimize/nothing.hpp>

namespace frugal::detail {

/// Whether it is one of LibTorch's own optimizers, whose saved form is known.
bool is_of_torch(torch::optim::Optimizer const& optimizer);

/// Saves a torch::optim optimizer so that equal states give equal bytes in every process;
/// compatible with Optimizer::load. Optimizer::save keys and orders the state by parameter
/// addresses; this uses the parameters' positions, counted from 1 over all groups.
///
/// A user-defined optimizer is saved by its own save(), because its form may differ.
void save_by_place(torch::optim::Optimizer const& optimizer,
                   torch::serialize::OutputArchive& archive);

}  // namespace frugal::detail

namespace frugal {

struct Any {};

/// Any torch::optim optimizer, LBFGS included, created by a user function.
///
/// Lever   none; it gives access to optimizers without a fused kernel.
/// Cost    that of the optimizer, and the handles of one window's batches, which are kept so that a
///         line search can evaluate the window again.
/// State   the optimizer's own, through torch's serialisation, as one blob of bytes: identical in
///         every process, except for a user-defined optimizer, whose
///         save() decides. Options (weight decay, momentum, betas) are those of `make`, also after
///         a resume, as with the other optimizers.
/// Errors  SettingsError without `make`; StateError for a blob of another optimizer.
///
///    Optimize<Any>{.make = [](std::vector<at::Tensor> parameters) {
///      return std::make_unique<torch::optim::RMSprop>(parameters, 1e-3);
///    }}
///
/// Each group's learning rate is multiplied by the schedule's factor.
template <>
struct Optimize<Any> {
  using kind = kinds::optimizer;
  using listens = list<on::fit_begin, on::update>;
  using properties = list<property::reevaluates>;
  // Line searches read the loss; the syncs of other torch::optim optimizers are not known here.
  static constexpr About about{Term::none, "what the torch::optim optimizer costs", 1};

  std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<at::Tensor>)> make{};

  class State {
   public:
    explicit State(Optimize const& settings) : make_(settings.make) {}

    void on_fit_begin(FitBegin& phase) {
      if (make_) optimizer_ = make_(phase.parameters().tensors);
      if (!optimizer_) {
        throw SettingsError({.what = "Optimize<Any> has no optimizer",
                             .where = "Optimize<Any>::make",
                             .why = make_ ? "make returned nothing" : "make was not set",
                             .fix = "Set make to a function that takes the parameters and "
                                    "returns a std::unique_ptr to a torch::optim optimizer."});
      }
      std::vector<GroupRate> shown;
      for (auto const& group : optimizer_->param_groups()) {
        detail::require_learning_rate(group.options().get_lr(), "Optimize<Any>");
        shown.push_back({"group_" + std::to_string(rates_.size()), group.options().get_lr()});
        rates_.push_back(group.options().get_lr());
      }
      phase.report_learning_rates(std::move(shown));
    }

    void on_update(Update& phase) {
      // torch::optim does not support a flag on the device: wait for it, as PyTorch's own scaler
      // does.
      if (phase.overflow().defined() && phase.overflow().template item<float>() != 0.0F) return;
      auto& groups = optimizer_->param_groups();
      for (std::size_t i = 0; i < groups.size(); ++i) {
        groups[i].options().set_lr(rates_[i] * phase.learning_rate_factor());
      }
      // The window's gradients exist already: only the second and later evaluations compute.
      bool first = true;
      optimizer_->step([&]() -> at::Tensor {
        if (first) {
          first = false;
          return phase.loss();
        }
        return phase.reevaluate();
      });
    }

    template <class Archive>
    void persist(Archive& archive) {
      std::string bytes;
      if constexpr (!Archive::loading) {
        fill_scratch();
        torch::serialize::OutputArchive out;
        detail::save_by_place(*optimizer_, out);
        std::ostringstream stream;
        out.save_to(stream);
        bytes = stream.str();
      }
      at::Tensor blob = at::empty({0}, at::kByte);
      if constexpr (!Archive::loading) {
        blob = at::from_blob(bytes.data(), {static_cast<std::int64_t>(bytes.size())}, at::kByte);
      } else {
        blob = at::Tensor();
      }
      archive("torch_optim", blob);
      if constexpr (Archive::loading) load(blob);
    }

   private:
    // LBFGS allocates scratch factors that it recomputes in every step; LibTorch fails to save
    // those that are still undefined.
    void fill_scratch() {
      for (auto& entry : optimizer_->state()) {
        auto* const lbfgs = dynamic_cast<torch::optim::LBFGSParamState*>(entry.second.get());
        if (lbfgs == nullptr || !lbfgs->al()) continue;
        for (at::Tensor& factor : *lbfgs->al()) {
          if (!factor.defined()) factor = at::zeros({1});
        }
      }
    }

    static std::optional<c10::Device> device_of(torch::optim::Optimizer const& optimizer) {
      for (auto const& group : optimizer.param_groups()) {
        if (!group.params().empty()) return group.params().front().device();
      }
      return std::nullopt;
    }

    void load(at::Tensor const& blob) {
      std::istringstream stream(
          std::string(static_cast<char const*>(blob.const_data_ptr()), blob.nbytes()));
      try {
        torch::serialize::InputArchive in;
        // To the parameters' device, wherever it was saved.
        in.load_from(stream, device_of(*optimizer_));
        // LibTorch merges what it loads, and a state saved before the first step is empty.
        optimizer_->state().clear();
        // LibTorch would also take the saved options over those of `make`.
        std::vector<std::unique_ptr<torch::optim::OptimizerOptions>> options;
        for (auto const& group : optimizer_->param_groups()) {
          options.push_back(group.options().clone());
        }
        optimizer_->load(in);
        auto& groups = optimizer_->param_groups();
        for (std::size_t i = 0; i < groups.size(); ++i) {
          groups[i].set_options(std::move(options.at(i)));
        }
      } catch (c10::Error const& error) {
        throw StateError({.what = "saved state does not fit the optimizer",
                          .where = "Optimize<Any>",
                          .why = error.what_without_backtrace(),
                          .fix = "Resume with the optimizer that saved it."});
      }
    }

    std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<at::Tensor>)> make_;
    std::unique_ptr<torch::optim::Optimizer> optimizer_;
    std::vector<double> rates_;
  };
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/policy/optimize/any.ipp>
#endif
