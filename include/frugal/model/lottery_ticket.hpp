// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/composition.hpp>
#include <frugal/core/compose/diagnostic.hpp>
#include <frugal/core/compose/options.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/run/metrics.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/report.hpp>
#include <frugal/core/run/run_snapshot.hpp>
#include <frugal/error.hpp>
#include <frugal/model/masked_weights.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal::kinds {

struct lottery_ticket : optional_kind {
  static constexpr std::string_view name = "LotteryTicket";
  static constexpr std::string_view page = "model/lottery_ticket.md";
  static constexpr Stage stage = Stage::update;
};

}  // namespace frugal::kinds

namespace frugal {

/// The step to whose bits each round goes back.
template <std::uint64_t Step>
struct Rewind {
  static constexpr std::uint64_t step = Step;
};
/// How often the trained weights are pruned.
template <int N>
struct Rounds {
  static_assert(N > 0, "frugal: Rounds<N>: a lottery ticket needs a round. Write Rounds<5>.");
  static constexpr int count = N;
};

/// A subnetwork as it was at the rewound step, and how it trains.
struct Ticket {
  int round = 0;                              ///< 0 is the whole network
  double sparsity = 0;                        ///< share of pruned weights
  Metrics metrics{};                          ///< of the validation source, at the end of its run
  std::map<std::string, at::Tensor> masks{};  ///< by parameter; of bool, true is kept
};

/// The result of LotteryTicket::draw. Prints sparsity against metrics.
struct Tickets {
  std::vector<Ticket> rounds{};  ///< the first is the whole network
  /// The parameters and buffers of the rewound step, by name: with a round's masks, its ticket.
  std::map<std::string, at::Tensor> rewound{};
  bool interrupted =
      false;  ///< a run was preempted or stopped by the user: later rounds are missing

  friend std::ostream& operator<<(std::ostream& out, Tickets const& all);
};

namespace detail {

FRUGAL_DIAGNOSTIC(
    ticket_with_checkpoint,
    "frugal: LotteryTicket trains one run after the other, and Checkpoint would resume "
    "the one before. Remove Checkpoint, and save what draw() returns.");
FRUGAL_DIAGNOSTIC(ticket_with_prune,
                  "frugal: LotteryTicket prunes between its rounds, and Prune within one. Keep one "
                  "of them.");
FRUGAL_DIAGNOSTIC(ticket_with_average,
                  "frugal: LotteryTicket rewinds to a step at which no weight was pruned, and an "
                  "average keeps a share of those. Remove Average.");

void require_fraction_of_round(double fraction);

template <class T>
inline constexpr bool is_rewind = false;
template <std::uint64_t Step>
inline constexpr bool is_rewind<Rewind<Step>> = true;
template <class T>
inline constexpr bool is_rounds = false;
template <int N>
inline constexpr bool is_rounds<::frugal::Rounds<N>> = true;

namespace option {

struct rewind {
  template <class O>
  static constexpr bool has = is_rewind<O>;
};
struct rounds {
  template <class O>
  static constexpr bool has = is_rounds<O>;
};

}  // namespace option

/// What the rounds hand on.
struct RoundsSoFar {
  std::uint64_t rewind = 0;
  std::optional<NamePatterns> where{};
  std::vector<at::Tensor> masks{};  ///< of the round; empty in the first
  RunSnapshot start{};              ///< at the step to which rounds go back
  MaskedWeights trained{};          ///< of the last round
};

}  // namespace detail

/// The policy of one round; LotteryTicket::draw gives it to the function that makes a trainer, which
/// puts it into the recipe.
struct TicketRound {
  using kind = kinds::lottery_ticket;
  using listens =
      list<on::fit_begin, on::ready, on::window, on::gradients, on::update, on::fit_end>;
  using before = list<kinds::clip>;
  using after = list<kinds::optimizer>;
  using conflicts = list<conflict<kinds::checkpoint, detail::ticket_with_checkpoint>,
                         conflict<kinds::prune, detail::ticket_with_prune>,
                         conflict<kinds::average, detail::ticket_with_average>>;

  static constexpr About about{Term::none, "two products with the masks per step"};
  using properties = list<property::capturable>;

  int number = 0;  ///< 0 is the run of the whole network
  std::shared_ptr<detail::RoundsSoFar> draw{};

  class State {
   public:
    // What it has is the draw's, which outlives the run.
    using transient = void;
    explicit State(TicketRound const& round) : number_(round.number), draw_(round.draw) {}

    void on_fit_begin(FitBegin& phase) {
      if (!draw_) {
        throw SettingsError({.what = "a TicketRound belongs to no draw",
                             .where = "LotteryTicket",
                             .why = "it was made outside of draw()",
                             .fix =
                                 "Call LotteryTicket::draw with a function that makes a trainer, "
                                 "and put the round that it gets into the recipe."});
      }
      draw_->trained.select(base_module(phase.module()), phase.parameters(), draw_->where,
                            "LotteryTicket");
      if (number_ == 0) return;
      for (std::size_t i = 0; i < draw_->masks.size(); ++i) {
        draw_->trained.masks[i].copy_(draw_->masks[i]);
      }
    }

    // In on_ready the whole run goes back: weights, moments, generators, the place in the data.
    void on_ready(Ready& phase) {
      if (number_ == 0) return;
      phase.restore(draw_->start);
      draw_->trained.mask_weights();
    }

    // When a window begins, every policy has seen the step before it.
    void on_window(WindowBegin& phase) {
      if (number_ != 0 || !draw_->start.empty()) return;
      if (phase.counters().step == draw_->rewind) phase.take(draw_->start, Part::resumable);
    }

    void on_gradients(Gradients&) {
      if (draw_) draw_->trained.mask_gradients();
    }
    void on_update(Update&) {
      if (draw_) draw_->trained.mask_weights();
    }

    void on_fit_end(FitEnd& phase) {
      if (!draw_->start.empty() || phase.preempted()) return;
      throw SettingsError({.what = "the run ended at step " +
                                   std::to_string(phase.counters().step) +
                                   ", before the step to which its rounds go back",
                           .where = "LotteryTicket<Rewind<" + std::to_string(draw_->rewind) + ">>",
                           .why = "there is nothing to rewind to",
                           .fix = "Rewind to an earlier step, or train for longer."});
    }

   private:
    int number_;
    std::shared_ptr<detail::RoundsSoFar> draw_;
  };
};

/// Looks for sparse subnetworks that train as well as the whole: trains, prunes the smallest weights,
/// rewinds what remains to the bits of an early step, and trains it again.
///
/// Lever   none by itself: it says how sparse a network can be, at the price of a run per round.
/// Cost    `Rounds` + 1 runs, and a copy of the state at the rewound step.
/// Errors  SettingsError for a run that ends before the rewound step, a fraction out of range, a
///         trainer without the round, those of Prune.
/// Source  Frankle and Carbin, "The lottery ticket hypothesis" (2019); Frankle et al., "Linear mode
///         connectivity and the lottery ticket hypothesis" (2020), for rewinding to a step.
///
///     LotteryTicket<Rewind<500>, Rounds<5>> const lottery{.fraction = 0.2};
///     auto const tickets = lottery.draw([&](TicketRound const& round) {
///       return Trainer{net, CrossEntropy{}, Settings{.epochs = 5}, Optimize<AdamW>{}, round};
///     }, train, valid);
///     std::cout << tickets << '\n';
template <class... Options>
struct LotteryTicket {
 private:
  using classes = list<detail::option::rewind, detail::option::rounds, detail::option::where>;
  static_assert(detail::options_known<classes, Options...>,
                "frugal: LotteryTicket<...>: unknown option. Options: Rewind<step>, Rounds<N>, "
                "Where<\"pattern\">.");
  static_assert(detail::options_unique<classes, Options...>,
                "frugal: LotteryTicket<...>: the same option twice. Keep one of each.");
  using Back = detail::option_of<detail::option::rewind, Rewind<0>, Options...>;
  using Count = detail::option_of<detail::option::rounds, Rounds<5>, Options...>;
  using Which = detail::option_of<detail::option::where, void, Options...>;

 public:
  std::uint64_t rewind = Back::step;  ///< the step to which rounds go back
  int rounds = Count::count;
  double fraction = 0.2;  ///< share of the remaining weights that each round prunes

  /// `make(round)` returns a trainer with `round` in its recipe; it is called for each round. Each
  /// trainer trains on `train` and is measured on `valid`.
  template <class Make, class Train, class Valid>
  Tickets draw(Make&& make, Train&& train, Valid&& valid) const {
    detail::require_fraction_of_round(fraction);
    auto const shared = std::make_shared<detail::RoundsSoFar>();
    detail::counted(rounds, "LotteryTicket::rounds");
    shared->rewind = rewind;
    if constexpr (!std::is_void_v<Which>) shared->where = NamePatterns(Which{});
    Tickets all;
    for (int number = 0; number <= rounds; ++number) {
      auto trainer = make(TicketRound{.number = number, .draw = shared});
      using Made = decltype(trainer);
      static_assert(detail::has<kinds::lottery_ticket, typename Made::policies>,
                    "frugal: LotteryTicket::draw: the trainer lacks the round. Put the argument of "
                    "the function into the recipe, as in `Trainer{net, CrossEntropy{}, settings, "
                    "Optimize<AdamW>{}, round}`.");
      Report const report = trainer.fit(train, valid);
      if (report.preempted || report.interrupted) {
        all.interrupted = true;
        break;
      }
      detail::MaskedWeights& trained = shared->trained;
      Ticket ticket{
          .round = number, .sparsity = trained.sparsity(), .metrics = trainer.evaluate(valid)};
      for (std::size_t i = 0; i < trained.names.size(); ++i) {
        ticket.masks.emplace(trained.names[i], trained.masks[i].clone());
      }
      all.rounds.push_back(std::move(ticket));
      // Of what remains, the share is pruned by size, over all layers.
      double const next = 1 - (1 - trained.sparsity()) * (1 - fraction);
      detail::prune_lowest(trained, detail::magnitudes_of(trained), next, /*globally=*/true);
      shared->masks = trained.masks;
    }
    for (auto const& [name, tensor] : shared->start.module.tensors)
      all.rewound.emplace(name, tensor);
    return all;
  }
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/model/lottery_ticket.ipp>
#endif
