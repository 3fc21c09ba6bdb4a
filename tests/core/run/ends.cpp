// SPDX-License-Identifier: Apache-2.0
// Observers that throw: what is saved, and what fit throws.
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>

#include "support/dying_runs.hpp"
#include "support/files.hpp"

#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace frugal_test::loop_ends {

using namespace frugal_test::support;
using namespace frugal_test::support::dying_runs;
using frugal::Every;
using Sgd = frugal::Optimize<frugal::SGD>;
using Checkpoints = frugal::Checkpoint<Every<4>, frugal::Keep<99>>;

struct A : frugal::optional_kind {
  static constexpr std::string_view name = "test.A";
};
struct B : frugal::optional_kind {
  static constexpr std::string_view name = "test.B";
};
struct C : frugal::optional_kind {
  static constexpr std::string_view name = "test.C";
};

enum class Fails { never, at_step, at_epoch_end, at_fit_end, as_a_kill };

/// Counts the steps that it has seen to their end; throws at step 6, or at an end.
template <class Kind>
struct Counts {
  using kind = Kind;
  using listens = frugal::list<frugal::on::step, frugal::on::epoch_end, frugal::on::fit_end>;

  Fails fails = Fails::never;
  std::uint64_t* steps = nullptr;

  struct State {
    Fails fails;
    std::uint64_t* out;
    std::uint64_t steps = 0;
    explicit State(Counts const& settings) : fails(settings.fails), out(settings.steps) {}

    void on_step(frugal::Step& phase) {
      if (phase.counters().step == 6) fail_if(Fails::at_step);
      if (phase.counters().step == 6 && fails == Fails::as_a_kill) throw Gone{};
      ++steps;
    }
    void on_epoch_end(frugal::EpochEnd&) { fail_if(Fails::at_epoch_end); }
    void on_fit_end(frugal::FitEnd&) {
      if (out != nullptr) *out = steps;
      fail_if(Fails::at_fit_end);
    }
    template <class Archive>
    void persist(Archive& archive) {
      archive("steps", steps);
    }

   private:
    void fail_if(Fails when) const {
      if (fails == when) throw std::runtime_error(std::string(Kind::name) + " fails");
    }
  };
};

/// What std::cerr gets meanwhile.
class Stderr {
 public:
  Stderr() : before_(std::cerr.rdbuf(text_.rdbuf())) {}
  Stderr(Stderr const&) = delete;
  Stderr& operator=(Stderr const&) = delete;
  ~Stderr() { std::cerr.rdbuf(before_); }
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::streambuf* before_;
};

Outcome start(std::filesystem::path const& folder, Fails b, std::uint64_t (*steps)[3] = nullptr,
              Fails c = Fails::never) {
  auto const place = [&](std::size_t i) { return steps == nullptr ? nullptr : &(*steps)[i]; };
  return run({.folder = folder}, Sgd{.lr = 0.1}, Checkpoints{}, Counts<A>{.steps = place(0)},
             Counts<B>{.fails = b, .steps = place(1)}, Counts<C>{.fails = c, .steps = place(2)});
}

Outcome uninterrupted() {
  TemporaryFolder const folder;
  return start(folder.path(), Fails::never);
}

TEST_CASE("the last steps are saved if an observer throws at the end, and fit throws that") {
  TemporaryFolder const folder;
  std::uint64_t steps[3] = {};
  CHECK_THROWS_WITH_AS(start(folder.path(), Fails::at_fit_end, &steps), "test.B fails",
                       std::runtime_error);
  CHECK(steps_in(folder.path()).back() == 33);  // 11 steps in each of 3 epochs
  CHECK(steps[2] == 33);                        // who comes after it sees the end
  Outcome const again = start(folder.path(), Fails::never);
  CHECK(again.losses.empty());
  CHECK(again.report.steps == 33);
  CHECK(same_bits(again.tensors, uninterrupted().tensors));
}

TEST_CASE("of several that throw at the end fit throws the first, and the others are on stderr") {
  TemporaryFolder const folder;
  Stderr const lines;
  CHECK_THROWS_WITH_AS(start(folder.path(), Fails::at_fit_end, nullptr, Fails::at_fit_end),
                       "test.B fails", std::runtime_error);
  CHECK(lines.text() == "frugal: a further error at the end of this fit: test.C: test.C fails\n");
  CHECK(steps_in(folder.path()).back() == 33);
}

TEST_CASE("the steps before an observer throws are saved, and the next start completes the event") {
  TemporaryFolder const folder;
  CHECK_THROWS_WITH_AS(start(folder.path(), Fails::at_step), "test.B fails", std::runtime_error);
  CHECK((steps_in(folder.path()) == Steps{0, 4, 6}));
  std::uint64_t steps[3] = {};
  Outcome const again = start(folder.path(), Fails::never, &steps);
  CHECK(again.losses.size() == 33 - 6);
  CHECK(same_bits(again.tensors, uninterrupted().tensors));
  for (std::uint64_t const each : steps) CHECK(each == 33);
}

TEST_CASE("likewise at the end of an epoch") {
  TemporaryFolder const folder;
  CHECK_THROWS_WITH_AS(start(folder.path(), Fails::at_epoch_end), "test.B fails",
                       std::runtime_error);
  CHECK((steps_in(folder.path()) == Steps{0, 4, 8, 11}));
  Outcome const again = start(folder.path(), Fails::never);
  CHECK(again.losses.size() == 33 - 11);
  CHECK(same_bits(again.tensors, uninterrupted().tensors));
}

TEST_CASE("what is no std::exception passes at once: it stands for a thread's cancellation") {
  TemporaryFolder const folder;
  CHECK(start(folder.path(), Fails::as_a_kill).died);
  CHECK((steps_in(folder.path()) == Steps{0, 4}));
}

TEST_CASE("if that save fails as well, fit throws the observer's error and stderr has the other") {
  TemporaryFolder const folder;
  Stderr const lines;
  struct Cuts {  // removes the folder in which the next save will write
    std::filesystem::path checkpoints;
    void operator()(frugal::Counters const& at) const {
      if (at.step != 6) return;
      std::filesystem::remove_all(checkpoints);
      std::ofstream(checkpoints) << "no folder";
      throw std::runtime_error("test.Spy fails");
    }
  };
  CHECK_THROWS_WITH_AS(run({.folder = folder.path()}, Sgd{.lr = 0.1}, Checkpoints{},
                           Spy{.each_step = Cuts{folder / "checkpoints"}}),
                       "test.Spy fails", std::runtime_error);
  CHECK(lines.text().starts_with(
      "frugal: a further error at the end of this fit: the save of the last steps: frugal: "));
}

}  // namespace frugal_test::loop_ends
