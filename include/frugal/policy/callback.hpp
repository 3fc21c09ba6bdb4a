// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/fixed_string.hpp>
#include <frugal/core/compose/hooks.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/error.hpp>

namespace frugal::detail {

/// Callbacks of one hook without a name: a recipe may have several, which are called in the order in which they
/// were written.
template <class Hook, fixed_string Name>
struct CallbackKind : repeatable_kind {
  static constexpr std::string_view name = Hook::name;
  static constexpr std::string_view page = "policy/callback.md";
  static constexpr Stage stage = Stage::decide;
};
/// One with a name is a kind of its own: the name finds its state in a checkpoint, and is in Report::stopped_by.
template <class Hook, fixed_string Name>
  requires(!std::string_view(Name).empty())
struct CallbackKind<Hook, Name> : optional_kind {
  static constexpr std::string_view name = Name;
  static constexpr std::string_view page = "policy/callback.md";
  static constexpr Stage stage = Stage::decide;
};

struct PersistName {
  void persist();
};
/// Whether a function is a struct with a member `persist`, whatever that takes.
template <class F>
inline constexpr bool has_persist = false;
template <class F>
  requires(std::is_class_v<F> && !std::is_final_v<F>)
inline constexpr bool has_persist<F> = !requires { &name_probe<F, PersistName>::persist; };

/// A function that a checkpoint has nothing of.
template <class F>
struct KeptCallback {
  using transient = void;
  F call;
};
/// One with members to save.
template <class F>
  requires(has_persist<F>)
struct KeptCallback<F> {
  template <class Archive>
  void persist(Archive& archive) {
    call.persist(archive);
  }
  F call;
};

/// Its own copy of the function, which this fit may change.
template <class F>
class CallbackState : public KeptCallback<F> {
 protected:
  explicit CallbackState(F const* call) : KeptCallback<F>{require(call)} {}

  template <class Phase>
  flow verdict(Phase& phase) {
    using Result = std::invoke_result_t<F&, Phase&>;
    static_assert(
        std::is_void_v<Result> || std::same_as<Result, flow>,
        "frugal: a callback returns a value that the loop does not use. Return nothing, or "
        "flow::stop to end the run and flow::proceed otherwise.");
    if constexpr (std::same_as<Result, flow>) {
      return this->call(phase);
    } else {
      this->call(phase);
      return flow::proceed;
    }
  }

 private:
  static F const& require(F const* call) {
    bool is_there = call != nullptr;
    // An empty std::function, or a null pointer to a function.
    if constexpr (requires { *call == nullptr; }) is_there = is_there && !(*call == nullptr);
    if (is_there) return *call;
    throw SettingsError({.what = "a callback has nothing to call",
                         .where = "Callback::call",
                         .why = "it was made without a function",
                         .fix = "Write fr::on_step(function), or leave it out of the recipe."});
  }
};

/// What a function that is a struct declares about itself; of a lambda nothing.
template <class F>
struct CallbackProperties {
  using type = list<>;
};
template <class F>
  requires requires { typename F::properties; }
struct CallbackProperties<F> {
  using type = typename F::properties;
};

template <class F, class Hook>
struct CallbackOf;
template <class F>
struct CallbackOf<F, on::step> : CallbackState<F> {
  using CallbackState<F>::CallbackState;
  flow on_step(Step& phase) { return this->verdict(phase); }
};
template <class F>
struct CallbackOf<F, on::validated> : CallbackState<F> {
  using CallbackState<F>::CallbackState;
  flow on_validated(Validated& phase) { return this->verdict(phase); }
};
template <class F>
struct CallbackOf<F, on::epoch_end> : CallbackState<F> {
  using CallbackState<F>::CallbackState;
  flow on_epoch_end(EpochEnd& phase) { return this->verdict(phase); }
};
template <class F>
struct CallbackOf<F, on::saved> : CallbackState<F> {
  using CallbackState<F>::CallbackState;
  static_assert(
      std::is_void_v<std::invoke_result_t<F&, Saved&>>,
      "frugal: a function of on_checkpoint returns nothing: a save does not end a run. End it "
      "in on_step.");
  void on_saved(Saved& phase) { static_cast<void>(this->verdict(phase)); }
};

}  // namespace frugal::detail

namespace frugal {

/// Calls a function at one point of the loop. Made by on_step(), on_validated(), on_epoch_end() and on_checkpoint():
///
///     fr::on_step([](fr::Step& step) { std::cout << step.counters().step << '\n'; })
///     fr::on_epoch_end([](auto& epoch) { return epoch.mean_loss() < 0.1 ? fr::flow::stop : fr::flow::proceed; })
///
/// Lever   none: for what a job does besides.
/// Cost    one call.
/// State   a function that is a struct with a `persist` member is saved with the run, and resumed; others are not.
///         Each fit has a copy of it.
/// Errors  an exception of the function ends the fit, as one of the objective does.
template <class Hook, class F = void (*)(typename Hook::phase&), fixed_string Name = "">
struct Callback {
  static_assert(
      std::copy_constructible<F>,
      "frugal: a callback cannot be copied, and each fit has a copy of its own. Capture a "
      "reference or a std::shared_ptr instead of what only moves.");
  static_assert(std::invocable<F&, typename Hook::phase&>,
                "frugal: a callback cannot be called with what the loop gives it. Take the phase "
                "by reference: "
                "fr::on_step([](fr::Step& step) { ... }), Validated for on_validated, EpochEnd for "
                "on_epoch_end, Saved for on_checkpoint.");
  static_assert(!detail::has_persist<F> || !std::string_view(Name).empty(),
                "frugal: a callback with a state has no name by which a checkpoint finds it. Write "
                "fr::on_step<\"name\">(function), or remove its member persist.");
  static_assert(
      std::string_view(Name).find('/') == std::string_view::npos,
      "frugal: a callback's name has a slash, which separates names in a checkpoint. Write "
      "it without one.");
  static_assert(
      !std::is_class_v<F> || !std::is_final_v<F>,
      "frugal: a callback is a final class. Remove `final`, or write a lambda that calls it.");
  using kind = detail::CallbackKind<Hook, Name>;
  using listens = list<Hook>;

  using properties = typename detail::CallbackProperties<F>::type;

  static constexpr About about{Term::none, "one call"};
  static constexpr std::string_view identity = kind::name;

  std::shared_ptr<F const> call{};

  struct State : detail::CallbackOf<F, Hook> {
    explicit State(Callback const& settings) : detail::CallbackOf<F, Hook>(settings.call.get()) {}
  };
};

/// After each optimizer step.
template <fixed_string Name = "", class F>
Callback<on::step, F, Name> on_step(F call) {
  return {std::make_shared<F const>(std::move(call))};
}

/// After each validation, with its metrics.
template <fixed_string Name = "", class F>
Callback<on::validated, F, Name> on_validated(F call) {
  return {std::make_shared<F const>(std::move(call))};
}

/// When a checkpoint is whole on disk: `saved.folder`, `saved.step`.
template <fixed_string Name = "", class F>
Callback<on::saved, F, Name> on_checkpoint(F call) {
  return {std::make_shared<F const>(std::move(call))};
}

/// At the end of each epoch.
template <fixed_string Name = "", class F>
Callback<on::epoch_end, F, Name> on_epoch_end(F call) {
  return {std::make_shared<F const>(std::move(call))};
}

}  // namespace frugal
