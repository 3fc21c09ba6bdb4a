// SPDX-License-Identifier: Apache-2.0
// needs: tensorboard
#pragma once

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/options.hpp>
#include <frugal/report/sink/file.hpp>
#include <frugal/report/sink/record.hpp>
#include <frugal/report/sink/state.hpp>
#include <frugal/report/sink/tensorboard_writer.hpp>
#include <frugal/report/sink/tfevent.hpp>

#include <ATen/ATen.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace frugal::kinds {

struct tensorboard : optional_kind {
  static constexpr std::string_view name = "TensorBoard";
  static constexpr std::string_view page = "report/tensorboard.md";
  static constexpr bool once_per_run = true;
  static constexpr Stage stage = Stage::publish;
};

}  // namespace frugal::kinds

namespace frugal::detail {

/// Writes the records and histograms of a run as events.
class TensorBoardSink {
 public:
  template <class Policy>
  explicit TensorBoardSink(Policy const& policy)
      : path_(policy.path), texts_(&policy.texts), writer_(policy.writer) {}

  void open(FitBegin& phase) {
    // The path is that of a folder; sink_path makes what is above it.
    auto const folder = sink_path(path_, phase.run_state(), "tensorboard", "TensorBoard");
    replaces_ = has_event_files(folder);
    writer_.open(folder);
  }
  void close() { writer_.close(); }

  void write(MetricRecord const& record) {
    // The mark of a resume voids later steps, and would leave one "end" for each preemption.
    if (record.preempted) return;
    TfSummary summary;
    if (record.kind == RecordKind::begin) {
      if (record.at.step != 0 || resumed_) {
        void_from(record.at.step + 1);
      } else if (replaces_) {
        // TensorBoard would draw both runs as one curve, which goes back and forth.
        void_from(0);
      }
    } else if (record.kind == RecordKind::event || record.kind == RecordKind::end) {
      add_words(summary, record);
    }
    mark_void();
    if (!has_texts_) {
      for (auto const& [name, text] : *texts_) summary.text(name, text);
    }
    for (auto const& [name, value] : record.fields) {
      if (record.kind == RecordKind::begin) break;
      if (auto const number = MetricRecord::number_in(value)) {
        summary.scalar(record.name + "/" + name, *number);
      }
    }
    writer_.write(summary, record.at.step);
    has_texts_ = true;
  }
  std::vector<at::Tensor> histogram_rows(std::vector<at::Tensor> const& tensors) const {
    return writer_.histogram_rows(tensors);
  }
  void write_histograms(std::vector<std::string> const& tags, std::vector<at::Tensor> const& rows,
                        std::uint64_t step) {
    mark_void();
    TfSummary summary;
    TensorBoardWriter::add_histograms(summary, tags, rows);
    writer_.write(summary, step);
  }

  template <class Archive>
  void persist(Archive& archive, SinkMoment const& now) {
    // The run's step, not the last record's: histograms and the user's values may come later.
    std::uint64_t step = now.step;
    archive("last_step", step);
    // A move to another device loads what it has just saved: nothing is void.
    if (!Archive::loading || destination(archive) || !writer_.is_open()) return;
    // A resume has its begin record, and a new file.
    if (now.in_run) {
      void_from(step + 1);
    } else {
      resumed_ = true;
    }
  }

 private:
  static bool has_event_files(std::filesystem::path const& folder) {
    std::error_code failure;
    for (std::filesystem::directory_iterator each(folder, failure), end; !failure && each != end;
         each.increment(failure)) {
      if (each->path().filename().string().starts_with(TensorBoardWriter::prefix)) return true;
    }
    return false;
  }

  /// What was written from this step on does not count any more.
  void void_from(std::uint64_t step) { void_from_ = std::min(void_from_.value_or(step), step); }
  /// Says so in the file, before the next record; if that fails, before the one after it.
  void mark_void() {
    if (void_from_) writer_.restart(*void_from_);
    void_from_.reset();
  }

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
  std::optional<std::uint64_t> void_from_;
  bool has_texts_ = false;
  bool replaces_ = false;  ///< the folder has files of an earlier run
  bool resumed_ = false;   ///< perhaps from a checkpoint of step 0
};

}  // namespace frugal::detail

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

/// The cadence of histograms that nobody wants.
struct NoHistograms {
  using weights_every = NoHistograms;
  using gradients_every = NoHistograms;
};

/// Adds the histograms to a sink's State.
template <class Cadence, class Weights>
class TensorBoardState : public SinkState<Cadence, TensorBoardSink> {
  using Base = SinkState<Cadence, TensorBoardSink>;

 public:
  template <class Policy>
  explicit TensorBoardState(Policy const& policy)
      : Base(policy), weights_every_(policy.weights_every) {}

  void on_step(Step& phase) {
    Base::on_step(phase);
    if constexpr (!std::same_as<Weights, NoHistograms>) {
      if (weights_every_.due_at_step(phase.counters())) {
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

 private:
  [[no_unique_address]] Weights weights_every_;
};

/// Listens to on_gradients as well, which a captured step does not have.
template <class Cadence, class Weights, class Gradient>
class TensorBoardGradientState : public TensorBoardState<Cadence, Weights> {
  using Base = TensorBoardState<Cadence, Weights>;

 public:
  template <class Policy>
  explicit TensorBoardGradientState(Policy const& policy)
      : Base(policy), gradients_every_(policy.gradients_every) {}

  void on_gradients(Gradients& phase) {
    Counters next = phase.counters();
    ++next.step;
    if (!gradients_every_.due_at_step(next)) return;
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
  [[no_unique_address]] Gradient gradients_every_;
  typename Base::Rows last_;
  std::uint64_t step_ = 0;  ///< that the last gradients make
};

}  // namespace detail

/// Logs a run to TensorBoard: an event file in the folder `tensorboard` of the run directory.
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
  static constexpr bool watches_gradients = !std::same_as<Gradient, detail::NoHistograms>;

 public:
  using kind = kinds::tensorboard;
  using listens =
      std::conditional_t<watches_gradients, concat<detail::sink_listens, list<on::gradients>>,
                         detail::sink_listens>;

  static constexpr About about{Term::none, "one event at its cadence"};

  Cadence every{};
  [[no_unique_address]] Weights weights_every{};     ///< with WeightHistograms
  [[no_unique_address]] Gradient gradients_every{};  ///< with GradientHistograms
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
