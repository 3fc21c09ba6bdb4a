// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/compose/composition.hpp>
#include <frugal/core/compose/legality.hpp>
#include <frugal/core/compose/scope.hpp>
#include <frugal/core/compose/services.hpp>
#include <frugal/core/compose/state_of.hpp>

namespace frugal {

/// Holds the States of a recipe's policies during a fit, and dispatches hooks to them.
///
/// `Ps` come in their computed order. A hook without subscribers costs no call, no argument and no
/// branch: `emit` folds over the subscribers alone, which are known at compile time.
template <class Context, class... Ps>
class Engine {
  static_assert((true & ... & detail::well_formed<Ps, Context>()));

 public:
  static constexpr auto const& infos = detail::infos_of<Ps...>;
  /// Whether a policy starts the run in several processes.
  static constexpr bool has_ranks = (false || ... || detail::has_property<property::has_ranks, Ps>);
  using states = detail::Storage<typename detail::state_of<Ps, Context>::type...>;

  /// `settings` is the Storage of the policies' values.
  template <class Settings>
  explicit Engine(Settings const& settings, RecipeFacts const& facts = Context::facts)
      : states_(std::in_place, settings, facts) {}

  Engine(Engine const&) = delete;
  Engine& operator=(Engine const&) = delete;

  /// In a process that is not the first of those that train together: kinds that are once_per_run
  /// are not called.
  void mute()
    requires has_ranks
  {
    muted_.on = true;
  }

  template <class Hook>
  static constexpr std::uint64_t subscriber_mask = detail::subscribers_of(infos, Hook::index);
  template <class Hook>
  static constexpr std::size_t subscriber_count = std::popcount(subscriber_mask<Hook>);
  template <class Hook>
  static constexpr bool has_subscribers = subscriber_count<Hook> != 0;

  /// Whether a policy may ask for the end at this event, in one of several processes alone.
  template <class Hook>
  static constexpr bool has_own_verdicts =
      (false || ... || detail::has_own_verdict<Hook, Context, Ps>());

  /// Calls every subscriber in order. A stop verdict does not short-circuit: every subscriber sees
  /// the event. `on_verdict(kind)` is called for each policy that asks to stop.
  template <class Hook, class Phase, class OnVerdict>
  flow emit(Phase& phase, OnVerdict&& on_verdict) {
    if constexpr (!has_subscribers<Hook>) {
      return flow::proceed;
    } else {
      return emit_to<Hook>(phase, on_verdict, subscribers<Hook>{});
    }
  }
  template <class Hook, class Phase>
  void emit(Phase& phase) {
    static_cast<void>(emit<Hook>(phase, detail::NoVerdict{}));
  }

  /// Calls every subscriber, also behind one that throws a std::exception. Returns the first of
  /// these, or null; `on_further(kind, exception)` gets each later one.
  template <class Hook, class Phase, class OnFurther>
  std::exception_ptr emit_to_all(Phase& phase, OnFurther&& on_further) {
    std::exception_ptr first;
    [&]<std::size_t... Is>(std::index_sequence<Is...>) {
      (call_kept<Hook, Is>(phase, first, on_further), ...);
    }(subscribers<Hook>{});
    return first;
  }

  /// Calls the slots alone: observers do not see a trial step that will be undone.
  template <class Hook, class Phase>
  void emit_to_slots(Phase& phase) {
    [&]<std::size_t... Is>(std::index_sequence<Is...>) {
      (call_slot<Hook, Is>(phase), ...);
    }(subscribers<Hook>{});
  }

  /// Calls only those slots that listen to `Other` as well.
  template <class Hook, class Other, class Phase>
  void emit_to_slots_of(Phase& phase) {
    [&]<std::size_t... Is>(std::index_sequence<Is...>) {
      ((((infos[Is].listens >> Other::index) & 1U) != 0 ? call_slot<Hook, Is>(phase) : void()),
       ...);
    }(subscribers<Hook>{});
  }

  /// Like emit, for an event that can be interrupted and completed later: skips the subscribers
  /// whose scope names are in `done`. If an exception passes through, `done` lists those that
  /// have completed the event. `current` is the position of the subscriber that is being called.
  template <class Hook, class Phase, class OnVerdict>
  flow emit_to_others(std::vector<std::string>& done, std::size_t& current, Phase& phase,
                      OnVerdict&& on_verdict) {
    return emit_rest<Hook>(done, current, phase, on_verdict, subscribers<Hook>{});
  }

  /// The scope names of the first `count` policies in order.
  static std::vector<std::string> names_of_first(std::size_t count) {
    return detail::first_scopes(infos, count);
  }

  /// Asks every subscriber. True if any answers true; `on_verdict(kind)` is called for each of
  /// those.
  template <class Hook, class Phase, class OnVerdict>
  bool ask(Phase& phase, OnVerdict&& on_verdict) {
    return [&]<std::size_t... Is>(std::index_sequence<Is...>) {
      return (false | ... | any_of<Hook, Is>(phase, on_verdict));
    }(subscribers<Hook>{});
  }

  /// Calls `body` inside every subscriber's guard; the first in order is the outermost. If `body`
  /// returns nothing, it must be reached: PolicyError if a guard does not call next().
  template <class Hook, class Phase, class Body>
  decltype(auto) surround(Phase& phase, Body&& body) {
    if constexpr (has_subscribers<Hook> && std::is_void_v<decltype(body())>) {
      bool reached = false;
      auto counted = [&] {
        reached = true;
        body();
      };
      nest<Hook, 0>(phase, counted);
      if (!reached) detail::refuse_unreached(Hook::name);
    } else {
      return nest<Hook, 0>(phase, body);
    }
  }

  /// Like surround, inside the slots' guards alone.
  template <class Hook, class Phase, class Body>
  decltype(auto) surround_slots(Phase& phase, Body&& body) {
    return nest<Hook, 0, /*SlotsAlone=*/true>(phase, body);
  }

  /// Whether a policy of the recipe provides the service.
  template <class Service>
  static constexpr bool provides = (false || ... || detail::is_provided_by<Service, Ps>);

  /// The position, in order, of the policy that provides it; that of none without one.
  template <class Service>
  static constexpr std::size_t provider_index() {
    constexpr bool found[] = {detail::is_provided_by<Service, Ps>..., true};
    std::size_t i = 0;
    while (!found[i]) ++i;
    return i;
  }

  /// The State of the policy that provides it.
  template <class Service>
  auto& provider() {
    static_assert(provides<Service>, "frugal: no policy of this recipe provides that service.");
    return detail::get<provider_index<Service>()>(states_);
  }

  /// The State of the policy with that kind.
  template <class Kind>
  auto& state() {
    constexpr std::size_t index = [] {
      for (std::size_t i = 0; i < sizeof...(Ps); ++i) {
        if (infos[i].kind == Kind::name) return i;
      }
      return sizeof...(Ps);
    }();
    static_assert(index < sizeof...(Ps), "frugal: this recipe has no policy of that kind.");
    return detail::get<index>(states_);
  }

  /// Passes every persistent State to the archive, each in a scope named after its kind ("Log",
  /// "Log.1" for a second one), in the computed order: the schema of a checkpoint. A State that
  /// declares `using dispensable = void` may be absent on either side. With `slots_alone`, skips
  /// observers; with `only`, skips all scopes but that one.
  template <class Archive>
  void persist(Archive& archive, bool slots_alone = false, std::string_view only = {}) {
    persist_each(archive, slots_alone, only, detail::set_bits<persistent>{});
  }

  /// The scopes that persist() shows, in its order.
  static std::vector<detail::SavedScope> saved_scopes() {
    return detail::saved_scopes(infos, persistent, dispensable);
  }

 private:
  template <class Hook>
  using subscribers = detail::set_bits<subscriber_mask<Hook>>;

  template <class Hook, class Phase, class OnVerdict, std::size_t... Is>
  flow emit_to(Phase& phase, OnVerdict&& on_verdict, std::index_sequence<Is...>) {
    flow verdict = flow::proceed;
    ((verdict |= is_muted<Is>() ? flow::proceed
                                : detail::call_hook<Hook>(detail::get<Is>(states_), phase,
                                                          infos[Is].kind, on_verdict)),
     ...);
    return verdict;
  }

  template <class Hook, class Phase, class OnVerdict, std::size_t... Is>
  flow emit_rest(std::vector<std::string>& done, std::size_t& current, Phase& phase,
                 OnVerdict&& on_verdict, std::index_sequence<Is...>) {
    flow verdict = flow::proceed;
    std::uint64_t reached = 0;
    try {
      ((static_cast<void>(done.empty() || !detail::is_among(done, scope_of(Is))
                              ? (current = Is, verdict |= is_muted<Is>()
                                                              ? flow::proceed
                                                              : detail::call_hook<Hook>(
                                                                    detail::get<Is>(states_), phase,
                                                                    infos[Is].kind, on_verdict))
                              : verdict),
        reached |= std::uint64_t{1} << Is),
       ...);
    } catch (...) {
      // Appended to the names already there: a recipe that changed may have another order.
      detail::add_scopes(done, infos, reached);
      throw;
    }
    return verdict;
  }

  template <std::size_t I>
  bool is_muted() const {
    if constexpr (has_ranks && infos[I].once_per_run) {
      return muted_.on;
    } else {
      return false;
    }
  }

  template <class Hook, std::size_t I, class Phase, class OnVerdict>
  bool any_of(Phase& phase, OnVerdict&& on_verdict) {
    if (is_muted<I>()) return false;
    bool const answer = Hook::call(detail::get<I>(states_), phase);
    if (answer) on_verdict(infos[I].kind);
    return answer;
  }

  template <class Hook, std::size_t I, class Phase, class OnFurther>
  void call_kept(Phase& phase, std::exception_ptr& first, OnFurther&& on_further) {
    if (is_muted<I>()) return;
    try {
      Hook::call(detail::get<I>(states_), phase);
    } catch (std::exception const&) {  // others, such as a thread's cancellation, pass at once
      if (first) {
        on_further(infos[I].kind, std::current_exception());
      } else {
        first = std::current_exception();
      }
    }
  }

  template <class Hook, std::size_t I, class Phase>
  void call_slot(Phase& phase) {
    if constexpr (infos[I].slot) Hook::call(detail::get<I>(states_), phase);
  }

  template <class Hook, std::size_t Depth, bool SlotsAlone = false, class Phase, class Body>
  decltype(auto) nest(Phase& phase, Body& body) {
    if constexpr (Depth == subscriber_count<Hook>) {
      return body();
    } else if constexpr (SlotsAlone && !infos[detail::nth_bit(subscriber_mask<Hook>, Depth)].slot) {
      return nest<Hook, Depth + 1, SlotsAlone>(phase, body);
    } else {
      auto next = [&]() -> decltype(auto) {
        return nest<Hook, Depth + 1, SlotsAlone>(phase, body);
      };
      constexpr std::size_t I = detail::nth_bit(subscriber_mask<Hook>, Depth);
      if constexpr (has_ranks && infos[I].once_per_run) {
        if (muted_.on) return next();
      }
      return Hook::call(detail::get<I>(states_), phase, next);
    }
  }

  template <class Archive, std::size_t... Is>
  void persist_each(Archive& archive, bool slots_alone, std::string_view only,
                    std::index_sequence<Is...>) {
    ((slots_alone && !infos[Is].slot
          ? void()
          : detail::persist_in_scope(detail::get<Is>(states_), archive, scope_of(Is), only)),
     ...);
  }

  static std::string scope_of(std::size_t which) { return detail::scope_of(infos, which); }

  static_assert(sizeof...(Ps) <= 64, "frugal: a recipe has at most 64 policies.");
  // One bit a policy, in order: those with a state to save, and of these the ones that a recipe may lack.
  static constexpr std::uint64_t persistent =
      detail::bits_of({detail::persists<typename detail::state_of<Ps, Context>::type>...});
  static constexpr std::uint64_t dispensable =
      detail::bits_of({detail::is_dispensable<typename detail::state_of<Ps, Context>::type>...});

  [[no_unique_address]] states states_;
  struct Muted {
    bool on = false;
  };
  struct NeverMuted {};
  [[no_unique_address]] std::conditional_t<has_ranks, Muted, NeverMuted> muted_;
};

}  // namespace frugal
