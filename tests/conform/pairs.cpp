// SPDX-License-Identifier: Apache-2.0
// Every two policies train together. A recipe of ten policies tries 45 pairs at once, so a few
// recipes, chosen so that each pair stands in one of them, do what the thousands of the whole
// product would.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>

#include "conform/policies.hpp"
#include "support/files.hpp"

namespace frugal_test::conform_pairs {

using namespace frugal_test::support;
using namespace frugal_test::conform;

constexpr std::size_t axes = Axes::size;
constexpr std::size_t most_choices = 8;

template <class... Choices>
constexpr std::size_t size_of(Axis<Choices...>) {
  return sizeof...(Choices);
}
constexpr std::array<std::size_t, axes> sizes = []<class... As>(frugal::list<As...>) {
  return std::array{size_of(As{})...};
}(Axes{});

template <class A, std::size_t I>
struct choice_of;
template <class... Choices, std::size_t I>
struct choice_of<Axis<Choices...>, I> {
  using type = frugal::type_at<frugal::list<Choices...>, I>;
};

/// The rule that two choices break, as Recipe::fault says: `of[a][x][b][y]` for b < a; empty if
/// they may stand together.
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

constexpr Faults faults = []<std::size_t... As>(std::index_sequence<As...>) {
  Faults out;
  (ask_axes<As>(out, std::make_index_sequence<As>{}), ...);
  return out;
}(std::make_index_sequence<axes>{});

using Row = std::array<std::size_t, axes>;

/// Rows that have every pair of choices, built greedily: each row takes, axis by axis, the choice
/// that brings most new pairs.
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
          // Begins elsewhere in every row, so that ties do not always fall to the first choice.
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

constexpr Cover<38> cover;
static_assert(cover.missing == 0, "some pair stands in no row: give the cover more rows");

template <std::size_t R>
struct row_of {
  template <std::size_t... As>
  static auto flat(std::index_sequence<As...>)
      -> frugal::concat<typename frugal::detail::policies_in<
          typename choice_of<frugal::type_at<Axes, As>, cover.rows[R][As]>::type>::type...>;
  using type = decltype(flat(std::make_index_sequence<axes>{}));
};

/// 30 steps; the losses of all of them.
template <class... Ps>
void train(frugal::list<Ps...> policies) {
  static_assert(frugal::Recipe<Ps...>::legal);
  CAPTURE(std::string(frugal::detail::type_name<frugal::list<Ps...>>()));
  TemporaryFolder folder;
  auto const module = std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.1, .norm = true});
  frugal::Trainer<std::shared_ptr<Mlp>, frugal::CrossEntropy, Ps...> trainer{
      module, {.run = folder.path(), .epochs = 100, .steps = 30}};
  prepare_all(trainer, policies);
  auto const before = tensors_of(*module);
  auto const report = trainer.fit(frugal::Resident(samples(22), {.batch = 4, .shuffle = true}),
                                  frugal::Resident(samples(9, 92), {.batch = 4}));
  CHECK(report.steps == 30);
  CHECK(report.stopped_by == "");
  CHECK(std::isfinite(report.train_loss));
  CHECK_FALSE(report.validations.empty());
  for (auto const& validation : report.validations)
    CHECK(std::isfinite(validation.metrics["loss"]));
  constexpr bool learns = !(std::same_as<Ps, frugal::Optimize<frugal::Nothing>> || ...);
  CHECK(at::equal(before.at("first.weight"), tensors_of(*module).at("first.weight")) == !learns);
  bool const logs = (std::same_as<typename Ps::kind, frugal::kinds::log> || ...);
  CHECK(std::filesystem::exists(folder / "metrics.jsonl") == logs);
}

TEST_CASE("every two policies train together, 30 steps to a finite loss") {
  [&]<std::size_t... Rs>(std::index_sequence<Rs...>) {
    (train(typename row_of<Rs>::type{}), ...);
  }(std::make_index_sequence<cover.rows.size()>{});
}

/// The choices of an axis that may stand beside a policy.
template <class Extra, class A>
struct beside;
template <class Extra, class... Choices>
struct beside<Extra, Axis<Choices...>> {
  using type = frugal::concat<std::conditional_t<frugal::Recipe<Extra, Choices>::legal,
                                                 frugal::list<Choices>, frugal::list<>>...>;
};

/// Of each axis the next of these choices: as many rows as the longest axis has choices show the
/// policy beside them all.
template <class Extra, std::size_t R, class... As>
auto row_beside(frugal::list<As...>) -> frugal::concat<
    frugal::list<Extra>,
    typename frugal::detail::policies_in<frugal::type_at<
        typename beside<Extra, As>::type, R % beside<Extra, As>::type::size>>::type...>;

constexpr std::size_t longest = *std::max_element(sizes.begin(), sizes.end());

// Not one more axis: it excludes so much that the cover would need half as many rows again.
TEST_CASE("Audit trains beside every policy that it may stand beside") {
  [&]<std::size_t... Rs>(std::index_sequence<Rs...>) {
    (train(decltype(row_beside<frugal::Audit<frugal::BitExact>, Rs>(Axes{})){}), ...);
  }(std::make_index_sequence<longest>{});
}

/// What cannot be trained here, with every choice that can.
template <class Extra, class... Choices>
void collect(std::set<std::string_view>& out, Axis<Choices...>) {
  (out.insert(frugal::Recipe<Extra, Choices>::fault), ...);
}
template <class Extra, class... As>
void collect_all(std::set<std::string_view>& out, frugal::list<As...>) {
  (collect<Extra>(out, As{}), ...);
}

TEST_CASE("two policies that do not compile break a rule whose sentence is proven in reject/") {
  std::set<std::string_view> sentences;
  for (auto const& choices : faults.of) {
    for (auto const& others : choices) {
      for (auto const& ours : others) sentences.insert(std::begin(ours), std::end(ours));
    }
  }
  collect_all<frugal::Graph<frugal::WholeStep>>(sentences, Axes{});
  collect_all<frugal::Checkpoint<frugal::HalfStorage>>(sentences, Axes{});
  collect_all<frugal::AutoBatch>(sentences, Axes{});
  collect_all<frugal::Audit<frugal::BitExact>>(sentences, Axes{});
  collect_all<frugal::Spot<frugal::SigtermSave>>(sentences, Axes{});
  sentences.erase("");
  // Two of a kind, two needs, two demands of Graph, and conflicts of two.
  CHECK(sentences.size() >= 9);
  std::string expected;
  for (auto const& entry :
       std::filesystem::directory_iterator(std::filesystem::path(FRUGAL_TEST_DIR) / "reject")) {
    if (entry.path().extension() == ".cpp") expected += text_of(entry.path());
  }
  for (std::string_view const sentence : sentences) {
    CAPTURE(sentence);
    CHECK(expected.find("// expect: " + std::string(sentence)) != std::string::npos);
  }
}

}  // namespace frugal_test::conform_pairs
