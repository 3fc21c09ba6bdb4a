// SPDX-License-Identifier: Apache-2.0
// A trainer with 4 * BLOCKS observers, and everything that fitting it instantiates.
// bench/compile.py compiles it with BLOCKS = 0, 1, 2, 4, and counts what each block costs the
// compiler.
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#ifdef FRUGAL_UMBRELLA
#include <frugal/frugal.hpp>
#else
#include <frugal/core.hpp>
#endif
#include <frugal/policy/optimize.hpp>

#include <torch/nn/modules/linear.h>

namespace {

/// "A0", "B0", ...: kinds are distinguished by name.
template <char Letter, std::size_t N>
struct ObserverKind : frugal::optional_kind {
  static constexpr char text[] = {Letter, static_cast<char>('0' + N), '\0'};
  static constexpr std::string_view name = text;
};

// One block of typical policies: a pass-through around the objective, one that reads gradients, one
// that counts steps and persists its count, one that watches validation.

template <std::size_t N>
struct Around {
  using kind = ObserverKind<'A', N>;
  using listens = frugal::list<frugal::around::forward>;

  struct State {
    explicit State(Around const&) {}
    decltype(auto) around_forward(frugal::Forward const&, auto&& next) { return next(); }
  };
};

template <std::size_t N>
struct Gradient {
  using kind = ObserverKind<'B', N>;
  using listens = frugal::list<frugal::on::fit_begin, frugal::on::gradients>;
  using after = frugal::list<ObserverKind<'A', N>>;

  struct State {
    using transient = void;
    explicit State(Gradient const&) {}
    void on_fit_begin(frugal::FitBegin&) { seen = 0; }
    void on_gradients(frugal::Gradients& phase) { seen += phase.gradients().size(); }
    std::size_t seen = 0;
  };
};

template <std::size_t N>
struct Counting {
  using kind = ObserverKind<'C', N>;
  using listens = frugal::list<frugal::on::step, frugal::on::epoch_end>;

  std::size_t limit = 1000;

  struct State {
    explicit State(Counting const& settings) : limit(settings.limit) {}
    frugal::flow on_step(frugal::Step&) {
      return ++steps < limit ? frugal::flow::proceed : frugal::flow::stop;
    }
    void on_epoch_end(frugal::EpochEnd&) { ++epochs; }
    template <class Archive>
    void persist(Archive& archive) {
      archive("steps", steps);
      archive("epochs", epochs);
    }
    std::size_t limit;
    std::size_t steps = 0;
    std::size_t epochs = 0;
  };
};

template <std::size_t N>
struct Watching {
  using kind = ObserverKind<'D', N>;
  using listens = frugal::list<frugal::on::validated, frugal::on::fit_end>;
  using needs = frugal::list<ObserverKind<'C', N>>;
  using before = frugal::list<ObserverKind<'C', N>>;

  struct State {
    explicit State(Watching const&) {}
    void on_validated(frugal::Validated&) { ++validations; }
    void on_fit_end(frugal::FitEnd const&) {}
    template <class Archive>
    void persist(Archive& archive) {
      archive("validations", validations);
    }
    std::size_t validations = 0;
  };
};

template <std::size_t N>
using Block = frugal::Recipe<Around<N>, Gradient<N>, Counting<N>, Watching<N>>;

template <std::size_t... Ns>
void fit(std::index_sequence<Ns...>, std::vector<frugal::Batch> const& train) {
  frugal::Trainer<torch::nn::Linear, frugal::CrossEntropy, frugal::Optimize<frugal::AdamW>,
                  Block<Ns>...>
      trainer{torch::nn::Linear(4, 2)};
  static_cast<void>(trainer.fit(train, train));
}

}  // namespace

void compile_bench(std::vector<frugal::Batch> const& train) {
#ifdef BLOCKS  // undefined: measures the headers alone
  fit(std::make_index_sequence<BLOCKS>{}, train);
#else
  static_cast<void>(train);
#endif
}
