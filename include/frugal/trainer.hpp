// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <iostream>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/composition.hpp>
#include <frugal/core/compose/watching.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/loop/evaluation.hpp>
#include <frugal/core/loop/fit.hpp>
#include <frugal/core/loop/window.hpp>
#include <frugal/core/measure/valid_sources.hpp>
#include <frugal/core/run/adapt.hpp>
#include <frugal/core/run/call_in_progress.hpp>
#include <frugal/core/run/context.hpp>
#include <frugal/core/run/ends.hpp>
#include <frugal/core/run/forward_batch.hpp>
#include <frugal/core/run/settings.hpp>
#include <frugal/core/run/surprises.hpp>
#include <frugal/core/source/range.hpp>
#include <frugal/core/source/source.hpp>
#include <frugal/data/refused_source.hpp>
#include <frugal/policy/accessors.hpp>
#include <frugal/policy/accumulate.hpp>        // IWYU pragma: keep
#include <frugal/policy/clip.hpp>              // IWYU pragma: keep
#include <frugal/policy/cuda_graph/eager.hpp>  // IWYU pragma: keep
#include <frugal/policy/optimize/nothing.hpp>  // IWYU pragma: keep
#include <frugal/policy/precision.hpp>         // IWYU pragma: keep
#include <frugal/policy/recipe_name.hpp>
#include <frugal/policy/replicate/none.hpp>  // IWYU pragma: keep
#include <frugal/policy/schedule.hpp>        // IWYU pragma: keep
#include <frugal/policy/validate.hpp>        // IWYU pragma: keep

namespace frugal {

/// The slots of every recipe. Each kind's null policy fills the slots that a recipe leaves open.
using slots = list<kinds::precision, kinds::accumulate, kinds::clip, kinds::optimizer,
                   kinds::schedule, kinds::validate, kinds::execution, kinds::replicate>;

namespace detail {

template <class P, class Values, class List>
inline constexpr bool has_places_for = true;
// A type of which the recipe has no place at all has a sentence of its own.
template <class P, class... Qs, class... Ps>
inline constexpr bool has_places_for<P, list<Qs...>, list<Ps...>> =
    (0 + ... + int{std::same_as<P, Ps>}) == 0 ||
    (0 + ... + int{std::same_as<P, Qs>}) <= (0 + ... + int{std::same_as<P, Ps>});

/// The accessors that kinds of a recipe bring. An illegal recipe has none, and its own sentence.
template <class Trainer, class List>
struct own_accessors_of {};
template <class Trainer, class... Ps>
  requires(... && Policy<Ps>)
struct own_accessors_of<Trainer, list<Ps...>>
    : accessors_of_kinds<Trainer, typename kinds_once<list<>, Ps...>::type> {};
template <class Trainer, class... Ps>
using own_accessors = own_accessors_of<Trainer, flatten<Ps...>>;

/// The default forward pass of predict().
struct ForwardOfData {
  template <class Module, class B>
  at::Tensor operator()(Module& module, B const& batch) const {
    if constexpr (std::convertible_to<B const&, at::Tensor>) {
      return forward(module, at::Tensor(batch));
    } else {
      static_assert(
          HasData<B> || ReadsBatch<Module, B>,
          "frugal: predict cannot tell which part of this batch the module takes. Give it a third "
          "argument: `[](auto& module, auto const& batch) { return ...; }`.");
      return forward_batch(module, batch);
    }
  }
};

/// The values of a trainer's policies, for functions over trainers.
struct TrainerAccess {
  template <class Trainer>
  static auto& values_of(Trainer& trainer) {
    return trainer.policies_;
  }
  template <class Trainer>
  static RecipeFacts facts_of(Trainer const& trainer) {
    return detail::facts_of(typename Trainer::policies{}, trainer.policies_);
  }
  /// As a fit does first.
  template <class Trainer>
  static void adapt(Trainer& trainer) {
    trainer.adapt_for(&trainer.settings());
  }
};

template <class Module, class List>
struct context_of;
template <class Module, class... Ps>
struct context_of<Module, list<Ps...>> {
  using type = Context<Module, Ps...>;
};

}  // namespace detail

/// A training loop made of a module, an objective and policies.
///
/// Module     any torch::nn::Module, by value, or a holder of one.
/// Objective  any callable `(module, batch) -> loss`; see Loss for weights.
/// Ps         policies and Recipes of them, in any order; open slots get their defaults.
///
///     Trainer<Net, CrossEntropy, Optimize<AdamW>> trainer{Net{}, {.epochs = 5}};
///     Trainer trainer{net, CrossEntropy{}, Settings{.epochs = 5}, Optimize<AdamW>{.lr = 3e-4}};
///     Trainer trainer{net, CrossEntropy{}, Optimize<AdamW>{}};    // one epoch, where the net is
///     Report report = trainer.fit(train, valid);
template <class Module, class Objective, class... Ps>
class Trainer : public Accessors<Trainer<Module, Objective, Ps...>>,
                public detail::own_accessors<Trainer<Module, Objective, Ps...>, Ps...> {
 public:
  using recipe = Recipe<Ps...>;

 private:
  static_assert((true && ... && !std::same_as<Ps, Settings>),
                "frugal: Settings comes before the policies. Write Trainer{module, objective, "
                "Settings{...}, policies...}.");
  static_assert(!std::same_as<Objective, Settings>,
                "frugal: a Trainer's second argument is the objective, and this one is Settings. "
                "Write `Trainer trainer{net, CrossEntropy{}, Settings{}, Optimize<AdamW>{}}`.");
  static_assert(!Policy<Objective>,
                "frugal: a Trainer's second argument is the objective, and this one is a policy. "
                "Write `Trainer trainer{net, CrossEntropy{}, Settings{}, Optimize<AdamW>{}}`.");
  // Asserts each rule once, with its sentence; the value itself adds nothing.
  static constexpr bool checked = detail::RecipeCheck<typename recipe::policies>::require() || true;
  static_assert(checked);
  using ordered = detail::composed_if_legal<recipe::legal, slots, typename recipe::policies>;
  // A default that fills an open slot may close a cycle which the recipe alone does not have.
  static_assert(detail::RecipeCheck<ordered>::require() || true);
  using context = typename detail::context_of<Module, ordered>::type;
  using strategy = detail::strategy_of<ordered>;

 public:
  /// Every policy of the trainer in the order in which events reach it, defaults included.
  using policies = ordered;

  /// Waits for the device in every step, as its policies declare.
  static constexpr int host_syncs_per_step = []<class... Qs>(list<Qs...>) {
    return (0 + ... + detail::about_of<Qs>().host_syncs_per_step);
  }(ordered{});

  explicit Trainer(Module module, Settings settings = {})
      : module_(std::move(module)), settings_(std::move(settings)) {}

  /// Policy values go where their types are in the recipe; the rest keep their defaults.
  template <class Q, class... Qs>
    requires(!std::convertible_to<Q, Settings>)
  Trainer(Module module, Objective objective, Q const& value, Qs const&... values)
      : Trainer(std::move(module), std::move(objective), Settings{}, value, values...) {}
  /// A trainer with settings.
  template <class... Qs>
  Trainer(Module module, Objective objective, Settings settings = {}, Qs const&... values)
      : module_(std::move(module)),
        objective_(std::move(objective)),
        settings_(std::move(settings)) {
    static_assert((... && detail::has_places_for<Qs, list<Qs...>, ordered>),
                  "frugal: the trainer is given more values of a policy type than its recipe has "
                  "policies of that type. Remove the extra values.");
    // An illegal recipe has its own sentence, and no place for values.
    if constexpr (recipe::legal) (detail::assignment_to(policies_, ordered{}) << ... << values);
  }

  /// Trains without validation data. Does not compile with a policy that watches validation.
  template <class Train>
  Report fit(Train&& train) {
    static_assert(detail::require_validation(ordered{}));
    auto&& source = as_source(std::forward<Train>(train));
    return fit_sources<std::remove_reference_t<decltype(source)>, void>(source, nullptr);
  }

  /// Trains, and measures on `valid` when the Validate policy's cadence says so. Of several sources
  /// all but the first need a name: `fit(train, valid, named<"shifted">(other))` measures "loss"
  /// and "shifted/loss".
  template <class Train, class Valid, class... Others>
  Report fit(Train&& train, Valid&& valid, Others&&... others) {
    static_assert(
        detail::watching_of<ordered>::type::is_of_sources(
            detail::source_name<std::remove_cvref_t<Valid>>,
            detail::source_name<std::remove_cvref_t<Others>>...),
        "frugal: a policy of this recipe watches a metric of a validation source that fit does not "
        "get. Give the source its name, as in fit(train, valid, named<\"shifted\">(other)) for "
        "\"shifted/accuracy\", or watch a metric of the first source.");
    auto&& source = as_source(std::forward<Train>(train));
    using source_type = std::remove_reference_t<decltype(source)>;
    if constexpr (sizeof...(Others) == 0 && !detail::is_named_source<std::remove_cvref_t<Valid>>) {
      auto&& watched = as_source(std::forward<Valid>(valid));
      return fit_sources<source_type, std::remove_reference_t<decltype(watched)>>(source, &watched);
    } else if constexpr (detail::require_names<Valid, Others...>()) {
      auto const fit = [&](auto&&... held) {
        detail::ValidSources all(detail::refer_to(held)...);
        return fit_sources<source_type, decltype(all)>(source, &all);
      };
      return fit(detail::hold(valid), detail::hold(others)...);
    } else {
      return {};
    }
  }

  /// Tries forward, backward and a checkpoint's round trip on the CPU and puts everything
  /// back; prints one line a check. Trains nothing, writes nothing, throws for no failed check.
  template <class Train>
  bool dry_run(Train&& train, std::ostream& out = std::cerr, std::size_t batches = 2) {
    auto&& source = as_source(std::forward<Train>(train));
    using source_type = std::remove_reference_t<decltype(source)>;
    std::vector<Check> checks;
    try {
      Settings const settings = resolved_settings();
      auto const call = begin_call(Kind::trains, "dry_run", settings, &source);
      adapt();
      detail::Fit<context, Objective, source_type, void> fit(module_, objective_, settings,
                                                             policies_, source, nullptr);
      checks = fit.set_up_and_dry_run(batches);
    } catch (DeviceError const& error) {
      checks = {{"set-up", false, error.what()}};
    }
    print(out, checks);
    return all_passed(checks);
  }

  /// The weighted mean loss of a source and the metrics of Validate, under the recipe's precision
  /// and on the device of a fit, where the module is moved if it is elsewhere. Trains nothing, and
  /// leaves weights, modes and generators as they are; the source is read from its beginning.
  /// Several sources have names, as in fit(). Throws what a validation would.
  template <class Source, class... Others>
  Metrics evaluate(Source&& source, Others&&... others) {
    if constexpr (sizeof...(Others) == 0 && !detail::is_named_source<std::remove_cvref_t<Source>>) {
      auto&& read = as_source(std::forward<Source>(source));
      return evaluate_source(read);
    } else if constexpr (detail::require_names<Source, Others...>()) {
      auto const measured = [this](auto&&... held) {
        detail::ValidSources all(detail::refer_to(held)...);
        return detail::measure_each(
            all, [this](auto& read, std::string const&) { return this->evaluate_source(read); });
      };
      return measured(detail::hold(source), detail::hold(others)...);
    } else {
      return {};
    }
  }

  /// Calls `sink(output, batch)` for each batch of a source, in the order of its data also if it
  /// shuffles (Cursor::in_order), with what the module makes of it: in evaluation mode, without
  /// gradients, under the recipe's precision, on the device of a fit. `forward(module, batch)` says
  /// how; left out, it is `forward_batch(module, batch)`.
  template <class Source, class Sink, class Forward = detail::ForwardOfData>
  void predict(Source&& source, Sink&& sink, Forward&& forward = {}) {
    auto&& read = as_source(std::forward<Source>(source));
    Settings const settings = resolved_settings();
    auto const call = begin_call(Kind::reads, "predict", settings, &read);
    adapt();
    detail::put_on(settings.device, base_module(module_));
    evaluation(settings).predict(read, forward, sink);
  }
  /// Without a sink it does not compile: outputs of a whole set may not fit into memory.
  template <class Source>
  void predict(Source&&) {
    static_assert(detail::never<Source>,
                  "frugal: predict gives each output to a function. Write `predict(source, [&]("
                  "at::Tensor const& output, auto const& batch) { ... })`.");
  }

  /// Name of the run: Settings::name, or else that of its recipe (recipe_name).
  std::string name() const {
    return settings_.name.empty() ? recipe_name<Trainer>() : settings_.name;
  }

  Module& module() { return module_; }
  Module const& module() const { return module_; }
  Objective& objective() { return objective_; }
  Settings& settings() { return settings_; }
  Settings const& settings() const { return settings_; }
  /// The settings of a fit, an evaluation or a range test: with the device, and its number, on
  /// which that will be. DeviceError if the module is on several devices and Settings::device names
  /// none.
  Settings resolved_settings() const {
    Settings resolved = settings_;
    // Modules have no constant list of their parameters behind a holder; nothing is changed here.
    torch::nn::Module const& module = base_module(const_cast<Module&>(module_));
    c10::Device device = detail::device_of_run(settings_.device, module);
    if constexpr (detail::provided<service::placement, ordered>) {
      device = provider<service::placement>().chosen(device);
    }
    resolved.device = device;
    return resolved;
  }
  /// Where everything that this trainer does happens: Settings::device, or else the device on which
  /// the module is.
  c10::Device device() const { return resolved_settings().device; }

  /// Does to the module what policies of the recipe do to it for good, such as Freeze and Lora. Every
  /// call that uses the module does this first; call it to load weights into the adapted module.
  void adapt() { adapt_for(nullptr); }

  /// The value of the policy of a kind, for reading it and changing its run-time settings. Of a
  /// repeatable kind that of number I, in the order of the recipe. `optimizer()`, `checkpoint()`
  /// and so on are shorter (Accessors).
  template <class Kind, std::size_t I = 0>
  auto& policy() {
    return policy_of<Kind, I>(policies_);
  }
  template <class Kind, std::size_t I = 0>
  auto const& policy() const {
    return policy_of<Kind, I>(policies_);
  }

 private:
  friend struct detail::TrainerAccess;

  /// `fit`: see detail::adapt_module().
  void adapt_for(Settings const* fit) {
    if constexpr (recipe::legal) {
      detail::adapt_module(policies_, ordered{}, base_module(module_), settings_.seed, fit);
    }
  }
  using Kind = detail::CallInProgress::Kind;

  template <class Source>
  Metrics evaluate_source(Source& source) {
    static_assert(ObjectiveFor<Objective, Module, batch_of<Source>>,
                  "frugal: the objective cannot be called with (module, batch), or returns neither "
                  "at::Tensor nor frugal::Loss. Write one of frugal's, such as CrossEntropy{}, or "
                  "[](Net& net, Batch const& batch) { return loss; }.");
    Settings const settings = resolved_settings();
    auto const call = begin_call(Kind::reads, "evaluate", settings, &source);
    adapt();
    detail::put_on(settings.device, base_module(module_));
    return evaluation(settings).evaluate(source);
  }

  /// What the processes of the recipe exchange through, which one fit at a time may use.
  void const* exchanges_of([[maybe_unused]] Kind kind) const {
    if constexpr (detail::provided<service::share, ordered>) {
      auto const& divides = provider<service::share>();
      if constexpr (requires { divides.exchanges(); }) {
        // Reading joins no processes.
        if (kind == Kind::trains) return divides.exchanges();
      }
    }
    return nullptr;
  }

  detail::CallInProgress begin_call(Kind kind, std::string_view name, Settings const& settings,
                                    void const* source, std::vector<void const*> others = {}) {
    return detail::CallInProgress({.kind = kind,
                                   .name = name,
                                   .module = &base_module(module_),
                                   .source = source,
                                   .others = std::move(others),
                                   .device = settings.device,
                                   .agrees = detail::provided<service::reduce, ordered>,
                                   .exchanges = exchanges_of(kind)});
  }
  detail::Evaluation<context, Objective> evaluation(Settings const& settings) {
    return {module_, objective_, settings, policies_};
  }

  template <class Train, class Valid>
  Report fit_sources(Train& train, std::add_pointer_t<Valid> valid) {
    if constexpr (recipe::legal) {
      static_assert(detail::has<kinds::optimizer, typename recipe::policies>,
                    "frugal: this recipe has no optimizer and would train nothing. Add "
                    "Optimize<AdamW>, or Optimize<Nothing> if that is what you mean.");
    }
    static_assert(ObjectiveFor<Objective, Module, batch_of<Train>>,
                  "frugal: the objective cannot be called with (module, batch), or returns neither "
                  "at::Tensor nor frugal::Loss. Write one of frugal's, such as CrossEntropy{}, or "
                  "[](Net& net, Batch const& batch) { return loss; }.");
    static_assert(detail::require_source<Train, order_type_of<Train>>(ordered{}));
    static_assert(strategy::template require_sources<Train, Valid>());
    static_assert(detail::require_objective<Objective>(ordered{}));
    Report report = run_fit<Train, Valid>(train, valid);
    if constexpr (detail::provided<service::after_fit, ordered>) {
      provider<service::after_fit>().after_fit(report);
    }
    return report;
  }

  template <class Train, class Valid>
  Report run_fit(Train& train, std::add_pointer_t<Valid> valid) {
    Settings const settings = resolved_settings();
    auto const call =
        begin_call(Kind::trains, "fit", settings, &train, detail::addresses_of(valid));
    adapt_for(&settings);
    auto const seed_before = std::exchange(fitted_with_, settings.seed);
    std::string const unused =
        detail::unused_gpu(settings_.device.is_given(), settings.device, detail::CudaHere::look());
    if (!unused.empty()) detail::say_warning(unused);
    Report report = placed_fit<Train, Valid>(settings, train, valid);
    if (!unused.empty()) report.warnings.push_back(unused);
    detail::advise_of_earlier_fit(report, seed_before == settings.seed);
    if (call.shares_generators()) {
      report.warnings.emplace_back(
          "threads that train together share LibTorch's generators, so random numbers such as "
          "dropout's differ from run to run; start a process for each");
    }
    return report;
  }

  template <class Train, class Valid>
  Report placed_fit(Settings const& settings, Train& train, std::add_pointer_t<Valid> valid) {
    auto const run = [&, this]<class T, class V>(T& source, V* watched) {
      return strategy::read(*this, source, context::facts_of(policies_).batches, [&](auto& read) {
        using Read = std::remove_reference_t<decltype(read)>;
        return detail::Fit<context, Objective, Read, V>(module_, objective_, settings, policies_,
                                                        read, watched)
            .run();
      });
    };
    if constexpr (detail::is_valid_sources<Valid> &&
                  detail::provided<service::placement, ordered>) {
      return detail::PlacedSources(provider<service::placement>(), train, *valid, run).run();
    } else if constexpr (detail::provided<service::placement, ordered>) {
      return provider<service::placement>().template surround<Valid>(train, valid, run);
    } else {
      return run(train, valid);
    }
  }

  template <class Kind, std::size_t I, class Values>
  static auto& policy_of(Values& values) {
    constexpr std::size_t index = detail::index_of_nth<Kind>(I, ordered{});
    constexpr bool there = index < ordered::size;
    static_assert(there,
                  "frugal: this trainer's recipe has no policy of the kind that is asked for. The "
                  "compiler's note names it: add such a policy, or remove the call.");
    if constexpr (there) {
      return detail::get<index>(values);
    } else {
      return values;
    }
  }
  template <class Service>
  auto const& provider() const {
    using Provider = typename detail::provider_of<Service, void, ordered>::type;
    return policy<typename Provider::kind>();
  }

  Module module_;
  [[no_unique_address]] Objective objective_{};
  Settings settings_;
  std::optional<std::uint64_t> fitted_with_{};  ///< the seed of the last fit
  [[no_unique_address]] typename detail::storage_of<ordered>::type policies_{};
};

template <class Module, class Objective, class... Ps>
Trainer(Module, Objective, Settings, Ps...) -> Trainer<Module, Objective, Ps...>;
template <class Module, class Objective>
Trainer(Module, Objective) -> Trainer<Module, Objective>;
template <class Module, class Objective, class P, class... Ps>
  requires(!std::convertible_to<P, Settings>)
Trainer(Module, Objective, P, Ps...) -> Trainer<Module, Objective, P, Ps...>;

}  // namespace frugal
