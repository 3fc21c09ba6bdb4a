// SPDX-License-Identifier: Apache-2.0
// needs: tensorboard
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <frugal/compose/about.hpp>
#include <frugal/compose/policy.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/options.hpp>
#include <frugal/policy/sink/file.hpp>
#include <frugal/policy/sink/state.hpp>
#include <frugal/policy/sink/tensorboard_writer.hpp>

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

class TensorBoardSink {
 public:
  template <class Policy>
  explicit TensorBoardSink(Policy const& policy)
      : path_(policy.path), texts_(&policy.texts), writer_(policy.writer) {}

  template <class Context>
  void open(FitBegin<Context>& phase) {
    // The path is that of a folder; sink_path makes what is above it.
    writer_.open(sink_path(path_, phase.settings().run, "tensorboard", "TensorBoard"));
  }
  void close() { writer_.close(); }

  void write(MetricRecord const& record) {
    TfSummary summary;
    if (record.kind == RecordKind::begin) {
      if (record.at.step != 0 || resumed_) writer_.restart(record.at.step + 1);
      for (auto const& [name, text] : *texts_) summary.text(name, text);
    } else if (record.kind == RecordKind::event || record.kind == RecordKind::end) {
      add_words(summary, record);
    }
    if (went_back_) writer_.restart(last_step_ + 1);
    went_back_ = false;
    for (auto const& [name, value] : record.fields) {
      if (record.kind == RecordKind::begin) break;
      if (auto const number = MetricRecord::number_in(value)) {
        summary.scalar(record.name + "/" + name, *number);
      }
    }
    writer_.write(summary, record.at.step);
    last_step_ = record.at.step;
  }
  void write(TfSummary const& summary, std::uint64_t step) { writer_.write(summary, step); }

  template <class Archive>
  void persist(Archive& archive, bool in_run) {
    archive("last_step", last_step_);
    // A resume has its begin record, and a new file.
    if (Archive::loading && writer_.is_open()) (in_run ? went_back_ : resumed_) = true;
  }

 private:
  /// The texts of an event, as one list.
  static void add_words(TfSummary& summary, MetricRecord const& record) {
    std::string words;
    for (auto const& [name, value] : record.fields) {
      auto const* const text = std::get_if<std::string>(&value);
      if (text != nullptr && !text->empty()) words += "* " + name + ": " + *text + "\n";
    }
    if (!words.empty()) summary.text(record.name + "/text", words);
  }

  std::filesystem::path path_;
  std::vector<std::pair<std::string, std::string>> const* texts_;
  TensorBoardWriter writer_;
  std::uint64_t last_step_ = 0;  ///< of a record
  bool went_back_ = false;
  bool resumed_ = false;  ///< perhaps from a checkpoint of step 0
};

/// Adds the histograms to a sink's State.
template <class Context, class Cadence, class Weights>
class TensorBoardState : public SinkState<Context, Cadence, TensorBoardSink> {
  using Base = SinkState<Context, Cadence, TensorBoardSink>;

 public:
  template <class Policy>
  explicit TensorBoardState(Policy const& policy) : Base(policy) {}

  void on_step(Step<Context>& phase) {
    Base::on_step(phase);
    if constexpr (!std::is_void_v<Weights>) {
      if (Weights::due_at_step(phase.counters())) {
        histograms("weights/", phase, phase.parameters().tensors, phase.counters().step);
      }
    }
  }

 protected:
  template <class Tensors>
  void histograms(std::string const& group, Phase<Context> const& phase, Tensors const& tensors,
                  std::uint64_t step) {
    this->attempt([&] {
      TfSummary summary;
      for (std::size_t i = 0; i < tensors.size(); ++i) {
        if (!tensors[i].defined()) continue;
        TensorBoardWriter::add_histogram(summary, group + phase.parameters().names[i], tensors[i]);
      }
      this->sink().write(summary, step);
    });
  }
};

/// Listens to on_gradients as well, which a captured step does not have.
template <class Context, class Cadence, class Weights, class Gradient>
class TensorBoardGradientState : public TensorBoardState<Context, Cadence, Weights> {
  using Base = TensorBoardState<Context, Cadence, Weights>;

 public:
  template <class Policy>
  explicit TensorBoardGradientState(Policy const& policy) : Base(policy) {}

  void on_gradients(Gradients<Context>& phase) {
    Counters next = phase.counters();
    ++next.step;
    if (!Gradient::due_at_step(next)) return;
    std::vector<at::Tensor> gradients;
    for (at::Tensor const& each : phase.parameters().tensors) gradients.push_back(each.grad());
    this->histograms("gradients/", phase, gradients, next.step);
  }
};

}  // namespace detail

/// Logs a run to TensorBoard: an event file in the folder `tensorboard` of the run's folder.
///
/// Lever   none; the curves of a run where many teams look already.
/// Cost    at its cadence one write and, with the losses on a device, one host sync; between times
///         one comparison of a counter. A histogram of a parameter is some passes over it, on its
///         device, and a copy of a few kilobytes.
/// State   the step of the last record. A resumed run has another file, which tells TensorBoard
/// from
///         which step on the files before it are void.
/// Errors  SettingsError without a folder to write to; DataError if the file cannot be made. A
///         failed write is an advice, once, and counted (`outcome`).
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
  using after = concat<detail::sink_after, list<kinds::clip>>;
  using before = detail::sink_before;

  static constexpr About about{Term::none, "one event at its cadence"};

  /// The folder; empty: `tensorboard` in Settings::run.
  std::filesystem::path path{};
  /// Tags and Markdown, written when the run begins: what explain() says of the recipe.
  std::vector<std::pair<std::string, std::string>> texts{};
  TensorBoardWriter writer{};      ///< copies of it add to the file of a fit
  Outcome<SinkOutcome> outcome{};  ///< set by fit: records written, and lost

  template <class Context>
  using State =
      std::conditional_t<watches_gradients,
                         detail::TensorBoardGradientState<Context, Cadence, Weights, Gradient>,
                         detail::TensorBoardState<Context, Cadence, Weights>>;
};

}  // namespace frugal
