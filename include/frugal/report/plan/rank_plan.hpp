// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/gradient_exchange.hpp>
#include <frugal/base/text_width.hpp>
#include <frugal/report/plan/all_reduce.hpp>
#include <frugal/report/plan/money.hpp>
#include <frugal/report/plan/plan.hpp>
#include <frugal/report/plan/prices.hpp>
#include <frugal/report/plan/require.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace frugal::plan {

using frugal::GradientSum;

/// A run that several processes (ranks) share: strong scaling, as the micro-batches of a step are
/// divided by their number.
struct RankInputs {
  Seconds micro_batch{};     ///< forward and backward of one micro-batch, measured in one process
  double micro_batches = 1;  ///< of a step in all processes together: Accumulate<N>
  Seconds update{};          ///< of a step: clipping and the optimizer, which every process does
  Gigabytes gradients{};     ///< bytes of the gradients, as they are computed
  LinkSpeed link{};          ///< the slowest between two processes: measure_link, tcp_link
  GradientSum sum = GradientSum::ring;
  bool bf16 = false;           ///< Wire<BF16>
  bool shards_states = false;  ///< Shard<States>
  bool power_sgd = false;      ///< Wire<PowerSGD<R>>
  Gigabytes low_rank{};        ///< bytes of the gradients with PowerSGD<R>; 0: not known
  double local_steps = 64;     ///< H, with GradientSum::local_steps
  Gigabytes bucket = gigabytes(25 << 20);  ///< Replicate<Ring>::bucket_bytes
  /// The last bucket, whose sum begins when the backward pass has ended; at most `bucket` if it is
  /// left out.
  std::optional<Gigabytes> last_bucket{};
  double steps = 1;              ///< of the run
  std::optional<Price> price{};  ///< of a process, or of a machine with so many of them
  double runs = 1;               ///< to do on the same processes, such as those of a search
  double most = 64;              ///< ranks of the last row
};

/// A step of so many ranks.
struct RankStep {
  Seconds compute{};        ///< of the micro-batches of one rank, and the update
  Seconds communication{};  ///< of all exchanges of the step
  Seconds exposed{};        ///< that part of it for which the step waits
  double efficiency = 1;    ///< time of one rank / (ranks x time of a step)

  constexpr Seconds step() const { return compute + exposed; }
};

/// Whether gradients are summed by Replicate<Ring>, which alone takes a Wire.
constexpr bool sums_by_ring(RankInputs const& in) {
  return in.sum == GradientSum::ring || in.sum == GradientSum::ring_after_backward;
}

/// Whether Replicate divides a step of so many micro-batches by so many ranks.
inline bool can_share(RankInputs const& in, double ranks) {
  double const each = in.micro_batches / ranks;
  auto const count = static_cast<long long>(each);
  if (static_cast<double>(count) != each || count < 1) return false;
  return in.sum != GradientSum::exact || ranks == 1 || (count & (count - 1)) == 0;
}

/// Throws SettingsError for what is negative, not finite or, where it is a divisor, 0.
inline RankInputs const& checked(RankInputs const& in) {
  detail::require_positive("micro-batch", in.micro_batch.value());
  detail::require_count("micro-batches", in.micro_batches);
  detail::require_not_negative("update", in.update.value());
  detail::require_not_negative("gradients", in.gradients.value());
  detail::require_not_negative("latency", in.link.latency);
  detail::require_positive("bytes per second", in.link.bytes_per_second);
  detail::require_positive("bucket", in.bucket.value());
  detail::require_positive("steps", in.steps);
  detail::require_count("runs", in.runs);
  detail::require_count("most", in.most);
  if (in.most > 65536) detail::refuse("most", in.most, "at most 65536");
  if (in.price) detail::require_not_negative("price", in.price->per_device().value());
  if (in.last_bucket) {
    detail::require_not_negative("last bucket", in.last_bucket->value());
    if (*in.last_bucket > in.gradients) {
      detail::refuse("last bucket", in.last_bucket->value(), "at most the gradients");
    }
  }
  detail::require_not_negative("low rank", in.low_rank.value());
  detail::require_count("local steps", in.local_steps);
  if (!sums_by_ring(in) && (in.bf16 || in.power_sgd)) {
    detail::refuse(in.bf16 ? "bf16" : "power_sgd", 1, "0: only Replicate<Ring> takes a Wire");
  }
  if (in.bf16 && in.power_sgd) {
    detail::refuse("bf16", 1, "0 with power_sgd: there is one Wire");
  }
  if (in.power_sgd && !(in.low_rank > Gigabytes(0))) {
    detail::refuse("low rank", in.low_rank.value(), "above 0 with power_sgd");
  }
  if (in.shards_states && in.sum == GradientSum::local_steps) {
    detail::refuse("shards_states", 1, "0: Replicate<LocalSteps<H>> takes no Shard");
  }
  return in;
}

/// The time of a step of `ranks` processes:
///
///   compute        N / W x micro-batch + update
///   all-reduce     2 (W - 1) / W x bytes / rate + 2 (W - 1) x latency for each bucket
///   exposed        without overlap all of it; with overlap what the backward pass of the last
///                  micro-batch does not hide (backward_share), and at least the last bucket
///   PowerSGD       two all-reduces of the factors, after the backward pass
///   local steps    an all-reduce of the weights once in H steps; a message of the losses in each
///
/// Left out: congestion, jitter between ranks, the processor's time for sending and for factors, and
/// GradientSum::exact with several processes that share a network card, which its all-to-all passes
/// once for each of them.
///
/// Errors  SettingsError for an input out of range, and for ranks that cannot share the step.
/// Source  Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
///         workstations" (2009); Thakur et al., "Optimization of collective communication operations
///         in MPICH" (2005), for the latency.
inline RankStep estimate(RankInputs const& in, double ranks) {
  detail::require_count("ranks", ranks);
  if (!can_share(checked(in), ranks)) {
    detail::refuse("ranks", ranks,
                   in.sum == GradientSum::exact ? "the micro-batches / 1, 2, 4, 8 and so on"
                                                : "a divisor of the micro-batches");
  }
  Seconds const latency((ranks - 1) * in.link.latency);  // of a half: scatter, or gather
  auto const half = [&](Gigabytes bytes) {
    return ring_all_reduce(ranks, bytes, GigabytesPerSecond(in.link.bytes_per_second / 1e9)) / 2;
  };
  Gigabytes const wire = in.gradients * (in.bf16 ? 0.5 : 1);
  RankStep out;
  out.compute =
      in.micro_batch * (in.micro_batches / ranks) + in.update / (in.shards_states ? ranks : 1);
  Seconds gather{};  // of the weights, after the update
  if (in.sum == GradientSum::exact) {
    // An all-to-all, the losses, and a gather of the sums; with Shard of the weights.
    out.communication = 2 * half(wire) + 3 * latency;
  } else if (in.sum == GradientSum::local_steps) {
    out.communication = (2 * half(in.gradients) + 2 * latency) / in.local_steps + latency;
  } else if (in.power_sgd) {
    out.communication = 2 * half(in.low_rank) + 2 * 2 * latency;
    if (in.shards_states) gather = half(in.gradients) + latency;
  } else {
    Gigabytes const first = std::min(gigabytes(1 << 20), in.bucket);
    double const others = std::ceil(std::max(0.0, (in.gradients - first) / in.bucket));
    out.communication = 2 * half(wire) + 2 * latency * (1 + others);
    if (in.shards_states) gather = half(in.gradients) + latency;
  }
  out.exposed = out.communication;
  if (in.sum == GradientSum::ring && !in.power_sgd) {
    Gigabytes const last = in.last_bucket.value_or(std::min(in.gradients, in.bucket));
    out.exposed = std::max(out.communication - backward_share * in.micro_batch,
                           2 * half(last * (in.bf16 ? 0.5 : 1)) + 2 * latency);
  }
  out.communication += gather;
  out.exposed += gather;
  out.efficiency = (in.micro_batch * in.micro_batches + in.update) / (ranks * out.step());
  return out;
}

/// A change of the recipe that lowers what communication costs.
struct RankLever {
  std::string_view name{};
  bool (*apply)(RankInputs&) = nullptr;  ///< false: the recipe has it, or cannot
};

/// In the order in which they change the training: the first one that comes to 80 % is taken, and of those
/// that do not, the one that helps most.
inline constexpr std::array<RankLever, 5> rank_levers{
    {{.name = "Replicate<Ring>",
      .apply =
          [](RankInputs& in) {
            bool const changes =
                in.sum == GradientSum::exact || in.sum == GradientSum::ring_after_backward;
            if (changes) in.sum = GradientSum::ring;
            return changes;
          }},
     {.name = "Wire<BF16>",
      .apply =
          [](RankInputs& in) {
            bool const changes = sums_by_ring(in) && !in.bf16 && !in.power_sgd;
            in.bf16 = in.bf16 || changes;
            return changes;
          }},
     {.name = "twice the micro-batches",
      .apply =
          [](RankInputs& in) {
            in.micro_batches *= 2;
            in.steps /= 2;
            return true;
          }},
     {.name = "Wire<PowerSGD<4>>",
      .apply =
          [](RankInputs& in) {
            // Its first 1,000 steps send gradients as they are.
            bool const changes =
                sums_by_ring(in) && !in.power_sgd && in.low_rank > Gigabytes(0) && in.steps > 1000;
            if (!changes) return false;
            in.bf16 = false;
            in.power_sgd = true;
            return true;
          }},
     {.name = "Replicate<LocalSteps<64>>", .apply = [](RankInputs& in) {
        if (in.sum == GradientSum::local_steps || in.shards_states) return false;
        in.bf16 = in.power_sgd = false;
        in.sum = GradientSum::local_steps;
        in.local_steps = 64;
        return true;
      }}}};

/// All runs on the processes of one row, which are paid for until the last run has ended.
struct RunsOnRanks {
  double at_once = 1;  ///< runs side by side; processes that are left over wait
  double ranks = 1;    ///< of each
  double hours = 0;    ///< until the last one has ended
  std::optional<Usd> cost{};
};

/// So many processes.
struct RankRow {
  double ranks = 1;
  RankStep at{};
  double hours = 0;           ///< of one run
  std::optional<Usd> cost{};  ///< of one run
  /// The lever to take, and the efficiency with it; empty from 80 % on, and where none helps.
  std::string_view lever{};
  double efficiency_with_lever = 1;
  RunsOnRanks one_after_another{};
  RunsOnRanks side_by_side{};  ///< the division into equal parts that ends first
  /// Of more ranks than the model was compared with.
  bool is_simulated = false;

  Scaling scaling() const { return scaling_of(at.efficiency); }
};

/// Up to so many ranks the model's sums were compared with measured ones (bench/cluster_links.py).
inline constexpr double validated_ranks = 8;

/// Time, efficiency and money over the number of processes. plan_ranks computes it.
struct RankPlan {
  std::vector<RankRow> rows{};  ///< by rising ranks; the first is one process
  double runs = 1;

  /// The most ranks of which 80 % or more is computing.
  RankRow const& best() const {
    return *std::find_if(rows.rbegin(), rows.rend(),
                         [](RankRow const& row) { return row.scaling() == Scaling::good; });
  }

  /// One to three sentences: how many ranks to take, what more of them would come to, and how to
  /// divide the processes of the last row among several runs.
  std::string recommendation() const;
};

namespace detail {

inline std::string time_and_cost(double hours, std::optional<Usd> const& cost) {
  return text_of(hours, Unit::hours) + (cost ? ", " + dollars_text(cost->value()) : "");
}
inline std::string ranks_text(double ranks) {
  return general(ranks, 15) + (ranks == 1 ? " rank" : " ranks");
}
inline std::string with_lever_text(RankRow const& row) {
  return std::string(row.lever) + " (" + text_of(row.efficiency_with_lever, Unit::share) + ")";
}
inline bool helps(RankRow const& row) {
  return row.efficiency_with_lever > row.at.efficiency + 0.0005;  // a digit of the table
}

inline std::string verdict_of(RankRow const& row) {
  switch (row.scaling()) {
    case Scaling::good:
      return "go";
    case Scaling::fair:
      return helps(row) ? "take " + with_lever_text(row) : "fewer ranks are cheaper";
    case Scaling::poor:
      break;
  }
  return helps(row) ? "fewer ranks, or " + with_lever_text(row) : "fewer ranks";
}

inline std::optional<Usd> cost_of(RankInputs const& in, double ranks, double hours) {
  if (!in.price) return {};
  return in.price->per_device() * DeviceHours(in.price->billed(ranks) * hours);
}

inline double hours_of(RankInputs const& in, double ranks) {
  return in.steps * estimate(in, ranks).step().value() / 3600;
}

inline RunsOnRanks runs_on(RankInputs const& in, double ranks, double parts) {
  RunsOnRanks out{.at_once = std::min(parts, in.runs), .ranks = ranks / parts};
  out.hours = std::ceil(in.runs / parts) * hours_of(in, out.ranks);
  out.cost = cost_of(in, ranks, out.hours);
  return out;
}

inline RankRow row_of(RankInputs const& in, double ranks) {
  RankRow row{.ranks = ranks, .at = estimate(in, ranks), .is_simulated = ranks > validated_ranks};
  row.hours = hours_of(in, ranks);
  row.cost = cost_of(in, ranks, row.hours);
  row.efficiency_with_lever = row.at.efficiency;
  for (RankLever const& lever : rank_levers) {
    if (scaling_of(row.efficiency_with_lever) == Scaling::good) break;
    RankInputs with = in;
    if (!lever.apply(with) || !can_share(with, ranks)) continue;
    double const efficiency = estimate(with, ranks).efficiency;
    if (efficiency <= row.efficiency_with_lever * (1 + 1e-12)) continue;
    row.lever = lever.name;
    row.efficiency_with_lever = efficiency;
  }
  row.one_after_another = row.side_by_side = runs_on(in, ranks, 1);
  for (double parts = 2; parts <= ranks && in.runs > 1; ++parts) {
    if (std::fmod(ranks, parts) != 0 || !can_share(in, ranks / parts)) continue;
    RunsOnRanks const other = runs_on(in, ranks, parts);
    if (other.hours < row.side_by_side.hours * (1 - 1e-12)) row.side_by_side = other;
  }
  return row;
}

}  // namespace detail

/// What a run takes on 1, 2, 4, 8 and so on processes: the numbers up to `most` that can share its
/// micro-batches, with the time of a step, the efficiency, hours and dollars, the lever to take, and
/// how to divide the processes among several runs.
///
/// Efficiency of 80 % and above: go. From 60 %: take the lever. Below: fewer ranks, and more runs at
/// once.
///
/// Errors  SettingsError for an input that is negative, not a number, or a rate or time of 0.
inline RankPlan plan_ranks(RankInputs const& in) {
  RankPlan plan{.runs = checked(in).runs};
  for (double ranks = 1; ranks <= std::min(in.most, in.micro_batches); ++ranks) {
    if (can_share(in, ranks)) plan.rows.push_back(detail::row_of(in, ranks));
  }
  return plan;
}

inline std::string RankPlan::recommendation() const {
  RankRow const& take = best();
  auto const simulated = [](RankRow const& row) { return row.is_simulated ? ", simulated" : ""; };
  std::string text = "Take " + detail::ranks_text(take.ranks) + ": " +
                     detail::text_of(take.at.efficiency, Unit::share) + " efficiency, " +
                     detail::time_and_cost(take.hours, take.cost) + simulated(take) + ".";
  if (&take != &rows.back()) {
    RankRow const& next = *(&take + 1);
    text += " " + detail::ranks_text(next.ranks) + " come to " +
            detail::text_of(next.at.efficiency, Unit::share);
    if (detail::helps(next)) {
      text += ", and with " + std::string(next.lever) + " to " +
              detail::text_of(next.efficiency_with_lever, Unit::share);
    }
    text += std::string(simulated(next)) + ".";
  }
  RankRow const& last = rows.back();
  if (runs == 1 || last.ranks == 1) return text;
  auto const of = [](RunsOnRanks const& on) {
    return detail::general(on.at_once, 15) + " at once on " + detail::ranks_text(on.ranks) +
           " each take " + detail::time_and_cost(on.hours, on.cost);
  };
  text += " " + detail::general(runs, 15) + " runs on " + detail::ranks_text(last.ranks) + ": ";
  if (last.side_by_side.at_once == 1) {
    return text + "one after another they take " +
           detail::time_and_cost(last.one_after_another.hours, last.one_after_another.cost) +
           ", and side by side no less.";
  }
  return text + of(last.side_by_side) + ", and one after another " +
         detail::time_and_cost(last.one_after_another.hours, last.one_after_another.cost) + ".";
}

/// The table, and below it the recommendation.
inline std::ostream& operator<<(std::ostream& out, RankPlan const& plan) {
  using Line = std::vector<std::string>;
  bool const has_cost = plan.rows.front().cost.has_value();
  std::vector<Line> lines{{"ranks", "step", "communication", "waits", "efficiency", "hours"}};
  if (has_cost) lines.front().push_back("cost");
  if (plan.runs > 1) {
    lines.front().push_back(detail::general(plan.runs, 15) + " runs");
    lines.front().push_back("side by side");
  }
  lines.front().push_back("verdict");
  bool is_simulated = false;
  for (RankRow const& row : plan.rows) {
    is_simulated = is_simulated || row.is_simulated;
    Line& line = lines.emplace_back();
    line = {detail::general(row.ranks, 15) + (row.is_simulated ? "*" : ""),
            detail::text_of(row.at.step().value(), Unit::seconds),
            detail::text_of(row.at.communication.value(), Unit::seconds),
            detail::text_of(row.at.exposed.value(), Unit::seconds),
            detail::text_of(row.at.efficiency, Unit::share),
            detail::text_of(row.hours, Unit::hours)};
    if (has_cost) line.push_back(dollars_text(row.cost->value()));
    if (plan.runs > 1) {
      auto const amount = [](RunsOnRanks const& on) {
        return on.cost ? dollars_text(on.cost->value()) : detail::text_of(on.hours, Unit::hours);
      };
      line.push_back(amount(row.one_after_another));
      line.push_back(detail::general(row.side_by_side.at_once, 15) + " x " +
                     detail::general(row.side_by_side.ranks, 15) + ": " + amount(row.side_by_side));
    }
    line.push_back(detail::verdict_of(row));
  }
  out << watch::columns(lines, std::vector<std::size_t>(lines.front().size(), 60));
  if (is_simulated) {
    out << "* simulated: the model was compared with measured sums of up to "
        << detail::ranks_text(validated_ranks) << ".\n";
  }
  return out << plan.recommendation() << '\n';
}

/// The same as the sections of a plan: the recommendation, and each number of processes.
inline Plan plan_of(RankPlan const& plan) {
  Plan out;
  PlanSection& advice = out.add("What to take");
  advice.rows = {{"ranks", plan.best().ranks, Unit::count}, {"runs", plan.runs, Unit::count}};
  advice.notes.push_back(plan.recommendation());
  for (RankRow const& row : plan.rows) {
    std::string const of = detail::general(row.ranks, 15);
    PlanSection& section =
        out.add(detail::ranks_text(row.ranks) + (row.is_simulated ? ", simulated" : ""));
    section.rows = {{"step_" + of, row.at.step().value(), Unit::seconds},
                    {"communication_" + of, row.at.communication.value(), Unit::seconds},
                    {"waits_" + of, row.at.exposed.value(), Unit::seconds},
                    {"efficiency_" + of, row.at.efficiency, Unit::share, detail::verdict_of(row)},
                    {"hours_" + of, row.hours, Unit::hours}};
    if (row.cost) section.rows.push_back({"cost_" + of, row.cost->value(), Unit::usd});
    if (plan.runs == 1) continue;
    RunsOnRanks const& side = row.side_by_side;
    section.rows.push_back({"all_runs_" + of, side.hours, Unit::hours,
                            detail::general(side.at_once, 15) + " at once on " +
                                detail::ranks_text(side.ranks) + " each"});
    if (side.cost) section.rows.push_back({"all_costs_" + of, side.cost->value(), Unit::usd});
  }
  return out;
}

}  // namespace frugal::plan
