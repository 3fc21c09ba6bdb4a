// SPDX-License-Identifier: Apache-2.0
// needs: tensorboard
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/options.hpp>
#include <frugal/report/sink/state.hpp>
#include <frugal/report/sink/tensorboard_sink.hpp>
#include <frugal/report/sink/tensorboard_writer.hpp>

namespace frugal {

/// An option of TensorBoard: histograms of all parameters, at a cadence of their own.
template <class Cadence = Every<1000>>
struct WeightHistograms {
  static_assert(detail::option::cadence::has<Cadence> && !Cadence::per_epoch,
                "frugal: WeightHistograms<...> takes a cadence in steps, such as Every<1000>.");
  using weights_every = Cadence;
};

/// An option of TensorBoard: histograms of all gradients, after clipping, likewise.
template <class Cadence = Every<1000>>
struct GradientHistograms {
  static_assert(detail::option::cadence::has<Cadence> && !Cadence::per_epoch,
                "frugal: GradientHistograms<...> takes a cadence in steps, such as Every<1000>.");
  using gradients_every = Cadence;
};

namespace detail {

namespace option {
struct weight_histograms {
  template <class O>
  static constexpr bool has = requires { typename O::weights_every; };
};
struct gradient_histograms {
  template <class O>
  static constexpr bool has = requires { typename O::gradients_every; };
};
}  // namespace option

/// Where no histograms are wanted.
struct NoHistograms {
  using weights_every = void;
  using gradients_every = void;
};

/// Adds the histograms to a sink's State.
template <class Cadence, class Weights>
class TensorBoardState : public SinkState<Cadence, TensorBoardSink> {
  using Base = SinkState<Cadence, TensorBoardSink>;

 public:
  template <class Policy>
  explicit TensorBoardState(Policy const& policy) : Base(policy) {}

  void on_step(Step& phase) {
    Base::on_step(phase);
    if constexpr (!std::is_void_v<Weights>) {
      if (Weights::due_at_step(phase.counters())) {
        this->attempt([&] {
          Rows const weights = rows("weights/", phase, phase.parameters().tensors);
          this->sink().write_histograms(weights.tags, weights.rows, phase.counters().step);
        });
      }
    }
  }

 protected:
  /// Histograms on their device.
  struct Rows {
    std::vector<std::string> tags;
    std::vector<at::Tensor> rows;
  };
  template <class Tensors>
  Rows rows(std::string const& group, Phase const& phase, Tensors const& tensors) {
    Rows out;
    std::vector<at::Tensor> defined;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (!tensors[i].defined()) continue;
      out.tags.push_back(group + phase.parameters().names[i]);
      defined.push_back(tensors[i]);
    }
    out.rows = this->sink().histogram_rows(defined);
    return out;
  }
};

/// Listens to on_gradients as well, which a captured step does not have.
template <class Cadence, class Weights, class Gradient>
class TensorBoardGradientState : public TensorBoardState<Cadence, Weights> {
  using Base = TensorBoardState<Cadence, Weights>;

 public:
  template <class Policy>
  explicit TensorBoardGradientState(Policy const& policy) : Base(policy) {}

  void on_gradients(Gradients& phase) {
    Counters next = phase.counters();
    ++next.step;
    if (!Gradient::due_at_step(next)) return;
    // If an optimizer evaluates several times, or a window is skipped and repeated, the gradients
    // that make the step are the last.
    this->guarded([&] {
      std::vector<at::Tensor> gradients;
      for (at::Tensor const& each : phase.parameters().tensors) gradients.push_back(each.grad());
      last_ = this->rows("gradients/", phase, gradients);
      step_ = next.step;
    });
  }
  void on_step(Step& phase) {
    Base::on_step(phase);
    if (last_.rows.empty()) return;
    typename Base::Rows const gradients = std::exchange(last_, {});
    if (step_ != phase.counters().step) return;  // of a window that a Rollback has undone
    this->attempt([&] { this->sink().write_histograms(gradients.tags, gradients.rows, step_); });
  }

 private:
  typename Base::Rows last_;
  std::uint64_t step_ = 0;  ///< that the last gradients make
};

}  // namespace detail

/// Logs a run to TensorBoard: an event file in the folder `tensorboard` of the run's folder.
///
/// Lever   none; the curves of a run where many teams look already.
/// Cost    at its cadence one write and, with the losses on a device, one host sync; between times
///         one comparison of a counter. A histogram of a parameter is some passes over it, on its
///         device; those of one step are copied to the host together, 12 KB each, with one host
///         sync.
/// State   the step. A resumed run has another file, which tells TensorBoard from which step on the
///         files before it are void. Without a checkpoint they are void as a whole.
/// Errors  SettingsError without a folder to write to; DataError if the file cannot be made. A
///         failed write is a warning, once, and counted (`outcome`).
///
/// Tags are "step/loss", "validation/accuracy", "epoch/loss", and "weights/<name>" for histograms.
template <class... Options>
struct TensorBoard {
 private:
  using classes = list<detail::option::cadence, detail::option::weight_histograms,
                       detail::option::gradient_histograms>;
  static_assert(detail::options_known<classes, Options...>,
                "frugal: TensorBoard<...>: unknown option. Options: a cadence such as Every<100>, "
                "WeightHistograms<Every<1000>>, GradientHistograms<Every<1000>>.");
  static_assert(detail::options_unique<classes, Options...>,
                "frugal: TensorBoard<...>: an option twice. Keep one cadence, and one each of "
                "WeightHistograms and GradientHistograms.");
  using Cadence = detail::option_of<detail::option::cadence, Every<100>, Options...>;
  using Weights = typename detail::option_of<detail::option::weight_histograms,
                                             detail::NoHistograms, Options...>::weights_every;
  using Gradient = typename detail::option_of<detail::option::gradient_histograms,
                                              detail::NoHistograms, Options...>::gradients_every;
  static constexpr bool watches_gradients = !std::is_void_v<Gradient>;

 public:
  using kind = kinds::tensorboard;
  using listens =
      std::conditional_t<watches_gradients, concat<detail::sink_listens, list<on::gradients>>,
                         detail::sink_listens>;

  static constexpr About about{Term::none, "one event at its cadence"};

  /// The folder; empty: `tensorboard` in Settings::run_dir.
  std::filesystem::path path{};
  /// Tags and Markdown, written when the run begins: what explain() says of the recipe.
  std::vector<std::pair<std::string, std::string>> texts{};
  TensorBoardWriter writer{};      ///< copies of it add to the file of a fit
  Outcome<SinkOutcome> outcome{};  ///< set by fit: records written, and lost

  using State = std::conditional_t<watches_gradients,
                                   detail::TensorBoardGradientState<Cadence, Weights, Gradient>,
                                   detail::TensorBoardState<Cadence, Weights>>;
};

}  // namespace frugal
