// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <concepts>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/loop/phase.hpp>
#include <frugal/policy/optimize/groups.hpp>

namespace frugal::detail {

inline double scaled_rate(double lr, double factor) { return lr * factor; }
/// CUDA's kernels take a rate in float, the CPU's in double.
inline at::Tensor scaled_rate(double lr, at::Tensor const& factor) {
  at::Tensor const rate = factor.mul(lr);
  return rate.is_cpu() ? rate : rate.to(at::kFloat);
}

/// What a fused kernel is given: lists of equal length, one entry a parameter.
struct FusedLists {
  std::vector<at::Tensor> parameters;
  std::vector<std::vector<at::Tensor>> moments;  ///< one list a moment
  std::vector<at::Tensor> steps;                 ///< float scalars, already counting this step
};

/// `Rate` is double, or a tensor where the step is captured.
template <class Rate>
struct FusedStep {
  FusedLists const& lists;
  std::vector<at::Tensor> const& gradients;
  Rate lr;
  double weight_decay;
  bool first;                          ///< the first step of every parameter in the lists
  std::optional<at::Tensor> overflow;  ///< where it is 1, the kernel changes nothing
};

/// Parameters that one kernel call updates: one group, one device, one dtype.
///
/// All parameters of a bucket share one step counter as long as all of them get a gradient in
/// every step, so that counting costs one operation and not one per tensor. A parameter that
/// misses a gradient does not count that step (as in PyTorch), and the counters part.
class FusedBucket {
 public:
  FusedBucket(double lr, double weight_decay, std::size_t moments)
      : lr_(lr), weight_decay_(weight_decay), moments_(moments) {}

  void add(std::string name, at::Tensor const& parameter) {
    names_.push_back(std::move(name));
    parameters_.push_back(parameter);
    steps_.push_back(counter_at(parameter, 0));
    for (auto& moment : moments_) moment.emplace_back();
  }

  /// One kernel call, or two when parameters begin at different steps (SGD's first step). With a
  /// factor that is a tensor no number of the host goes into it, whatever the device: such a step
  /// can be captured.
  template <class Rule, class Factor>
  void step(Rule const& rule, GradientList const& all, Factor const& factor,
            at::Tensor const& overflow) {
    constexpr bool on_host = std::same_as<Factor, double>;
    bool const whole = all.complete() && all.tensors().size() == parameters_.size();
    if (!whole) gather();
    std::vector<at::Tensor> const& gradients = whole ? all.tensors() : gradients_;
    if (gradients.empty()) return;
    if (whole ? active_ != parameters_.size() : changed_) regroup(rule, whole);
    for (at::Tensor const& counter : counters_) {
      // A counter in host memory is a float, not an operator.
      if (on_host && counter.is_cpu()) {
        *counter.data_ptr<float>() += 1.0F;
      } else {
        counter.add_(1);
        // On the device the flag may not be there yet: it takes back what was counted.
        if (overflow.defined()) counter.sub_(overflow);
      }
    }
    auto const lr = scaled_rate(lr_, factor);
    auto const flag = overflow.defined() ? std::optional(overflow) : std::nullopt;
    if (Rule::has_first_step && mixed()) {
      step_apart(rule, gradients, lr, flag);
    } else {
      rule.apply(FusedStep<Rate<Factor>>{lists_, gradients, lr, weight_decay_, !begun_, flag});
    }
    begun_ = true;
    gradients_.clear();
  }

  /// Are tensors of its state others than when this was last asked?
  bool moved() { return std::exchange(moved_, false); }

  template <class Rule, class Archive>
  void persist(Rule const& rule, Archive& archive) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      archive.scope(names_[i], [&](auto& inner) {
        double count = steps_[i].template item<double>();
        inner("step", count);
        // Where the parameter lies, which may be elsewhere than where the counter was made.
        if (Archive::loading) steps_[i] = counter_at(parameters_[i], count);
        for (std::size_t m = 0; m < moments_.size(); ++m) {
          // An archive fills a tensor that is there, on its device, and refuses another shape.
          if (Archive::loading) moments_[m][i] = unfilled_like(parameters_[i]);
          inner(rule.moment_name(m), moments_[m][i]);
        }
      });
    }
    if (Archive::loading) active_ = 0;  // the lists are made anew at the next step
  }

 private:
  static at::Tensor counter_at(at::Tensor const& parameter, double count) {
    return at::full({}, count, parameter.options().dtype(at::kFloat).requires_grad(false));
  }
  template <class Factor>
  using Rate = std::conditional_t<std::same_as<Factor, double>, double, at::Tensor>;

  static at::Tensor unfilled_like(at::Tensor const& parameter) {
    return at::empty_like(parameter, at::TensorOptions().requires_grad(false),
                          at::MemoryFormat::Preserve);
  }

  // Gradients of those parameters that have one, and whether these are the same as last time.
  void gather() {
    gradients_.clear();
    changed_ = false;
    std::size_t at = 0;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      at::Tensor const& gradient = parameters_[i].grad();
      if (!gradient.defined()) continue;
      changed_ = changed_ || at >= active_ || chosen_[at] != i;
      ++at;
      gradients_.push_back(gradient);
    }
    changed_ = changed_ || at != active_;
  }

  template <class Rule>
  void regroup(Rule const& rule, bool whole) {
    chosen_.clear();
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (whole || parameters_[i].grad().defined()) chosen_.push_back(i);
    }
    active_ = chosen_.size();
    moved_ = true;
    share_counters();
    lists_ = {
        .parameters = {}, .moments = {moments_.size(), std::vector<at::Tensor>{}}, .steps = {}};
    begun_ = false;
    for (std::size_t const i : chosen_) {
      if (parameters_[i].grad().layout() != at::kStrided) refuse_sparse(i);
      lists_.parameters.push_back(parameters_[i]);
      lists_.steps.push_back(steps_[i]);
      begun_ = begun_ || steps_[i].item<float>() != 0.0F;
      for (std::size_t m = 0; m < moments_.size(); ++m) {
        if (!moments_[m][i].defined()) {
          moments_[m][i] =
              at::full_like(parameters_[i], rule.initial(m),
                            at::TensorOptions().requires_grad(false), at::MemoryFormat::Preserve);
        }
        lists_.moments[m].push_back(moments_[m][i]);
      }
    }
  }

  // One counter for all chosen parameters if they have counted alike, else one each.
  void share_counters() {
    bool alike = true;
    for (std::size_t const i : chosen_) {
      alike = alike && steps_[i].equal(steps_[chosen_.front()]);
    }
    for (at::Tensor& steps : steps_) steps = steps.clone();
    counters_.clear();
    for (std::size_t const i : chosen_) {
      if (alike) steps_[i] = steps_[chosen_.front()];
      if (!alike || counters_.empty()) counters_.push_back(steps_[i]);
    }
  }

  bool mixed() const {
    if (counters_.size() < 2) return false;
    std::size_t first = 0;
    for (at::Tensor const& counter : counters_) first += counter.item<float>() == 1.0F;
    return first != 0 && first != counters_.size();
  }

  template <class Rule, class Rate>
  void step_apart(Rule const& rule, std::vector<at::Tensor> const& gradients, Rate const& lr,
                  std::optional<at::Tensor> const& overflow) {
    for (bool const first : {true, false}) {
      FusedLists part{
          .parameters = {}, .moments = {moments_.size(), std::vector<at::Tensor>{}}, .steps = {}};
      std::vector<at::Tensor> some;
      for (std::size_t i = 0; i < active_; ++i) {
        if ((lists_.steps[i].item<float>() == 1.0F) != first) continue;
        part.parameters.push_back(lists_.parameters[i]);
        part.steps.push_back(lists_.steps[i]);
        for (std::size_t m = 0; m < moments_.size(); ++m) {
          part.moments[m].push_back(lists_.moments[m][i]);
        }
        some.push_back(gradients[i]);
      }
      if (some.empty()) continue;
      rule.apply(FusedStep<Rate>{part, some, lr, weight_decay_, first, overflow});
    }
  }

  [[noreturn]] void refuse_sparse(std::size_t i) const {
    throw SettingsError({.what = "parameter '" + names_[i] + "' has a sparse gradient",
                         .where = "Optimize",
                         .why = "the fused kernels take dense gradients",
                         .mend = "Build the embedding with sparse(false), or use Optimize<Any> "
                                 "with torch::optim::SGD or Adagrad."});
  }

  double lr_;
  double weight_decay_;
  std::vector<std::string> names_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> steps_;
  std::vector<std::vector<at::Tensor>> moments_;

  std::vector<std::size_t> chosen_;   // parameters in the lists
  std::size_t active_ = 0;            // how many
  std::vector<at::Tensor> counters_;  // distinct tensors among lists_.steps
  FusedLists lists_;
  std::vector<at::Tensor> gradients_;
  bool changed_ = false;
  bool begun_ = false;
  bool moved_ = false;
};

/// The State of every fused optimizer. `Rule` is the policy's value: it checks its settings,
/// names and initialises its moments, and calls its kernel.
template <class Rule, class Context>
class FusedState {
 public:
  explicit FusedState(Rule const& rule) : rule_(rule) {}

  void on_fit_begin(FitBegin<Context>& phase) {
    rule_.check();
    Parameters const& parameters = phase.parameters();
    auto const group_of = assign_groups(rule_.groups, parameters);
    using Key = std::tuple<std::size_t, std::string, c10::ScalarType>;
    std::map<Key, std::size_t> bucket_of;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      at::Tensor const& parameter = parameters.tensors[i];
      Key const key{group_of[i], parameter.device().str(), parameter.scalar_type()};
      auto const [entry, is_new] = bucket_of.try_emplace(key, buckets_.size());
      if (is_new) buckets_.push_back(bucket(group_of[i]));
      buckets_[entry->second].add(parameters.names[i], parameter);
    }
  }

  void on_update(Update<Context>& phase) {
    // The kernels are no part of the graph; a guard costs less than detaching every tensor.
    at::NoGradGuard const no_gradients;
    at::Tensor const& overflow = phase.overflow();
    if constexpr (captures_steps<typename Context::policies>) {
      bool moved = false;
      for (FusedBucket& each : buckets_) {
        at::Tensor const& factor = phase.learning_rate_tensor();
        each.step(rule_, phase.gradients(), factor, overflow);
        if (each.moved()) moved = true;
      }
      if (moved) phase.state_has_moved();
      return;
    }
    // In host memory the flag is a number, and no kernel has to look at it.
    bool const on_host = overflow.defined() && overflow.is_cpu();
    if (on_host && host_scalar(overflow) != 0) return;
    for (FusedBucket& each : buckets_) {
      each.step(rule_, phase.gradients(), phase.learning_rate_factor(),
                on_host ? at::Tensor() : overflow);
    }
  }

  template <class Archive>
  void persist(Archive& archive) {
    for (FusedBucket& each : buckets_) each.persist(rule_, archive);
  }

 private:
  FusedBucket bucket(std::size_t group) const {
    double lr = rule_.lr;
    double weight_decay = rule_.weight_decay;
    if (group < rule_.groups.size()) {
      lr = rule_.groups[group].lr.value_or(lr);
      weight_decay = rule_.groups[group].weight_decay.value_or(weight_decay);
    }
    return {lr, weight_decay, rule_.moment_count()};
  }

  Rule rule_;
  std::vector<FusedBucket> buckets_;
};

}  // namespace frugal::detail
