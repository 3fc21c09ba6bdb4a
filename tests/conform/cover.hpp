// SPDX-License-Identifier: Apache-2.0
// Every two policies train together. A recipe of ten policies tries 45 pairs at once, so a few
// recipes that together contain each pair replace the thousands of the full product. They are split
// over two files, because a compiler needed more than three gigabytes for one.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "conform/bits.hpp"
#include "conform/module_state.hpp"
#include "conform/policies.hpp"
#include "support/files.hpp"

namespace frugal_test::conform_pairs {

using namespace frugal_test::support;
using namespace frugal_test::conform;

inline constexpr std::size_t axes = Axes::size;
inline constexpr std::size_t most_choices = 8;

template <class... Choices>
constexpr std::size_t size_of(Axis<Choices...>) {
  return sizeof...(Choices);
}
inline constexpr std::array<std::size_t, axes> sizes = []<class... As>(frugal::list<As...>) {
  return std::array{size_of(As{})...};
}(Axes{});

template <class A, std::size_t I>
struct choice_of;
template <class... Choices, std::size_t I>
struct choice_of<Axis<Choices...>, I> {
  using type = frugal::type_at<frugal::list<Choices...>, I>;
};

/// The rule that two choices break, as in Recipe::fault: `of[a][x][b][y]` for b < a; empty if they
/// combine.
struct Faults {
  std::string_view of[axes][most_choices][axes][most_choices] = {};
};

template <class Y, class... Xs>
constexpr void ask(Faults& out, std::size_t a, std::size_t b, std::size_t y, Axis<Xs...>) {
  std::size_t x = 0;
  ((out.of[a][x++][b][y] = frugal::Recipe<Xs, Y>::fault), ...);
}
template <class Own, class... Ys>
constexpr void ask_all(Faults& out, std::size_t a, std::size_t b, Own own, Axis<Ys...>) {
  std::size_t y = 0;
  (ask<Ys>(out, a, b, y++, own), ...);
}
template <std::size_t A, std::size_t... Bs>
constexpr void ask_axes(Faults& out, std::index_sequence<Bs...>) {
  (ask_all(out, A, Bs, frugal::type_at<Axes, A>{}, frugal::type_at<Axes, Bs>{}), ...);
}

inline constexpr Faults faults = []<std::size_t... As>(std::index_sequence<As...>) {
  Faults out;
  (ask_axes<As>(out, std::make_index_sequence<As>{}), ...);
  return out;
}(std::make_index_sequence<axes>{});

using Row = std::array<std::size_t, axes>;

/// Rows that contain every pair of choices, built greedily: each row takes, axis by axis, the
/// choice that adds the most new pairs.
template <std::size_t Rows>
struct Cover {
  std::array<Row, Rows> rows{};
  std::size_t missing = 0;

  constexpr Cover() {
    bool seen[axes][most_choices][axes][most_choices] = {};
    for (std::size_t r = 0; r < Rows; ++r) {
      for (std::size_t a = 0; a < axes; ++a) {
        std::size_t best = 0;
        std::size_t most = 0;
        for (std::size_t n = 0; n < sizes[a]; ++n) {
          // Starts at another choice in every row, so that ties do not always favour the first.
          std::size_t const choice = (n + r) % sizes[a];
          std::size_t fresh = 1;
          for (std::size_t b = 0; b < a; ++b) {
            if (!faults.of[a][choice][b][rows[r][b]].empty()) fresh = 0;
            if (fresh != 0) fresh += !seen[b][rows[r][b]][a][choice];
          }
          if (fresh > most) {
            best = choice;
            most = fresh;
          }
        }
        rows[r][a] = best;
        for (std::size_t b = 0; b < a; ++b) seen[b][rows[r][b]][a][best] = true;
      }
    }
    for (std::size_t a = 0; a < axes; ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        for (std::size_t x = 0; x < sizes[b]; ++x) {
          for (std::size_t y = 0; y < sizes[a]; ++y) {
            missing += faults.of[a][y][b][x].empty() && !seen[b][x][a][y];
          }
        }
      }
    }
  }
};

inline constexpr Cover<38> cover;
static_assert(cover.missing == 0, "some pair stands in no row: give the cover more rows");

template <std::size_t R>
struct row_of {
  template <std::size_t... As>
  static auto flat(std::index_sequence<As...>)
      -> frugal::concat<typename frugal::detail::policies_in<
          typename choice_of<frugal::type_at<Axes, As>, cover.rows[R][As]>::type>::type...>;
  using type = decltype(flat(std::make_index_sequence<axes>{}));
};

template <class P>
inline constexpr bool keeps_best = std::same_as<
    P, frugal::Checkpoint<frugal::Every<1, frugal::Epoch>, frugal::Async, frugal::KeepBest<>>>;

/// The weights of the best checkpoint, evaluated, give the metrics in its manifest.
template <class Trainer, class Source>
void best_checkpoint_has_its_metrics(std::filesystem::path const& run, Trainer& trainer,
                                     Source& valid) {
  auto const best = frugal::best_checkpoint(run);
  frugal::load_weights(trainer.module(), best);
  auto const metrics = frugal::read_checkpoint(best).manifest.metrics;
  for (auto const& [name, value] : trainer.evaluate(valid)) {
    CAPTURE(name);
    REQUIRE(metrics.contains(name));
    CHECK(metrics.at(name) == value);
  }
}

/// Trains 30 steps.
template <class... Ps>
void train(frugal::list<Ps...> policies) {
  static_assert(frugal::Recipe<Ps...>::legal);
  CAPTURE(std::string(frugal::detail::type_name<frugal::list<Ps...>>()));
  TemporaryFolder folder;
  auto const module = std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.1, .norm = true, .tied = true});
  frugal::Trainer<std::shared_ptr<Mlp>, frugal::CrossEntropy, Ps...> trainer{
      module, {.run_dir = folder.path(), .epochs = 100, .steps = 30}};
  prepare_all(trainer, policies);
  auto const before = tensors_of(*module);
  auto const flags = flags_of(*module);
  frugal::TensorDataset valid(samples(9, 92), {.batch = 4});
  auto const fit = [&] {
    return trainer.fit(frugal::TensorDataset(samples(22), {.batch = 4, .shuffle = true}), valid);
  };
  auto const report = fit();
  auto const after = tensors_of(*module);
  conform::write_bits(after);
  CHECK(differences(flags, flags_of(*module)) == "");
  CHECK(report.steps == 30);
  CHECK(report.stopped_by == "");
  CHECK(std::isfinite(report.train_loss));
  CHECK_FALSE(report.validations.empty());
  for (auto const& validation : report.validations)
    CHECK(std::isfinite(validation.metrics["loss"]));
  constexpr bool learns = !(std::same_as<Ps, frugal::Optimize<frugal::Nothing>> || ...);
  CHECK(at::equal(before.at("first.weight"), after.at("first.weight")) == !learns);
  bool const logs = (std::same_as<typename Ps::kind, frugal::kinds::log> || ...);
  CHECK(std::filesystem::exists(folder / "metrics.jsonl") == logs);
  if constexpr ((keeps_best<Ps> || ...)) {
    best_checkpoint_has_its_metrics(folder.path(), trainer, valid);
  }
  // The second fit is the first one again, also of a module in evaluation mode.
  put_back(*module, before);
  module->eval();
  auto const evaluating = flags_of(*module);
  TemporaryFolder second;
  trainer.settings().run_dir = second.path();
  CHECK(fit().steps == 30);
  CHECK(same_bits(tensors_of(*module), after));
  CHECK(differences(evaluating, flags_of(*module)) == "");
}

/// Trains a third of the rows: all of them in one file take more memory than a compiler may.
template <std::size_t Third>
void train_third() {
  constexpr std::size_t first = cover.rows.size() * Third / 3;
  constexpr std::size_t end = cover.rows.size() * (Third + 1) / 3;
  [&]<std::size_t... Rs>(std::index_sequence<Rs...>) {
    (train(typename row_of<first + Rs>::type{}), ...);
  }(std::make_index_sequence<end - first>{});
}

}  // namespace frugal_test::conform_pairs
