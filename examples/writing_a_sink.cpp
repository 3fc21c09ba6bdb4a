// SPDX-License-Identifier: Apache-2.0
// A metric sink from scratch, outside of frugal: JobLines appends a line to a file for each event of a run,
// for a service that follows jobs. docs/writing_a_sink.md goes through this file,
// tests/docs/writing_a_sink.cpp tests it.
#include <frugal/frugal.hpp>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace mine {

// [begin line]
using Fields = std::vector<std::pair<std::string, frugal::Event::Value>>;

std::string in_quotes(std::string_view text) {
  std::string all = "\"";
  for (char const c : text) {
    if (c == '"' || c == '\\') all += '\\';
    all += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return all + '"';
}

template <class Number>
std::string json_of(Number value) {
  if (!std::isfinite(static_cast<double>(value)))
    return "null";  // JSON has neither NaN nor infinity
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};  // in every locale
}
std::string json_of(std::string const& value) { return in_quotes(value); }

/// {"event":"step","step":10,"loss":0.5}
std::string line_of(std::string_view event, std::uint64_t step, Fields const& fields) {
  std::string line = "{\"event\":" + in_quotes(event) + ",\"step\":" + json_of(step);
  for (auto const& [name, value] : fields) {
    line += ',' + in_quotes(name) + ':';
    line += std::visit([](auto const& each) { return json_of(each); }, value);
  }
  return line + "}\n";
}
// [end line]

// [begin kind]
namespace kinds {
struct job_lines : frugal::repeatable_kind {
  static constexpr std::string_view name = "JobLines";
  static constexpr frugal::Stage stage = frugal::Stage::publish;
  static constexpr bool once_per_run = true;  // of several processes, the first one calls it
};
}  // namespace kinds
// [end kind]

// [begin head]
/// Appends a line to a file for each due step, validation, epoch and event of a run.
///
/// Cost    at its cadence one write and, with the losses on a device, one host sync.
/// State   the length of the file: a resumed run cuts off the lines that it writes again.
/// Errors  SettingsError without a place to write to. A write that fails later is a warning.
template <class Cadence = frugal::Every<100>>
struct JobLines {
  using kind = kinds::job_lines;
  using listens = frugal::list<frugal::on::fit_begin, frugal::on::ready, frugal::on::step,
                               frugal::on::validated, frugal::on::epoch_end, frugal::on::fit_end,
                               frugal::on::recorded>;

  static constexpr frugal::About about{frugal::Term::none, "one line at its cadence"};

  Cadence every{};               ///< when a step writes a line
  std::filesystem::path path{};  ///< empty: job.jsonl in Settings::run_dir
  // [end head]

  // [begin events]
  class State {
   public:
    using dispensable = void;  // a resumed run may lack its sink, or have a new one

    explicit State(JobLines const& settings) : every_(settings.every), path_(settings.path) {}

    void on_fit_begin(frugal::FitBegin& phase) {
      if (path_.empty() && phase.settings().run_dir.empty()) {
        throw frugal::SettingsError({.what = "JobLines has nowhere to write",
                                     .where = "JobLines::path",
                                     .why = "neither it nor Settings::run_dir is set",
                                     .fix = "Set one of them."});
      }
      if (path_.empty()) {
        path_ = phase.settings().run_dir / "job.jsonl";
        std::filesystem::create_directories(path_.parent_path());
      }
      // Before the first step a file that cannot be opened is an error, later a warning.
      if (!std::ofstream(path_, std::ios::app)) {
        throw frugal::DataError({.what = "JobLines cannot open its file",
                                 .where = path_.string(),
                                 .why = "it cannot be written to",
                                 .fix = "Check the permissions there, or set JobLines::path."});
      }
      if (!std::filesystem::is_regular_file(path_)) return;
      size_ = std::filesystem::file_size(path_);  // of another run; a resume loads another one
      phase.writes_to(path_);  // a checkpoint makes the file durable before itself
    }
    // The first write: only now the run is not refused, and knows whether it is resumed.
    void on_ready(frugal::Ready& phase) {
      ready_ = true;
      append(phase, line_of("begin", phase.counters().step, {}));
      write_events(phase);
    }

    void on_step(frugal::Step& phase) {
      if (!every_.due_at_step(phase.counters())) return;
      Fields fields{{"loss", phase.last_loss()}};
      if (auto const rate = phase.learning_rate()) fields.emplace_back("learning_rate", *rate);
      for (auto const& [name, value] : phase.gauges().items()) fields.emplace_back(name, value);
      write(phase, "step", fields);
    }
    void on_validated(frugal::Validated& phase) {
      Fields fields;
      for (auto const& [name, value] : phase.metrics) fields.emplace_back(name, value);
      write(phase, "validation", fields);
    }
    void on_epoch_end(frugal::EpochEnd& phase) {
      write(phase, "epoch", {{"loss", phase.mean_loss()}});
    }
    void on_fit_end(frugal::FitEnd& phase) {
      // A finished run that is started again has one end.
      if (ended_at_ == phase.counters().step) return;
      ended_at_ = phase.counters().step;
      write(phase, phase.preempted() ? "preempted" : "end",
            {{"stopped_by", std::string(phase.stopped_by())}});
    }
    // What other policies record: "resume", "rollback", "cost". Those before on_ready wait.
    void on_recorded(frugal::Recorded& phase) {
      if (ready_) write_events(phase);
    }
    // [end events]

    // [begin state]
    template <class Archive>
    void persist(Archive& archive) {
      archive("size", size_);
      archive("ended_at", ended_at_);
      // With the next line, not now: the resume may still be refused.
      if (Archive::loading) cut_to_ = size_;
    }

   private:
    void write(frugal::Phase const& phase, std::string_view event, Fields const& fields) {
      write_events(phase);  // what policies recorded comes first
      append(phase, line_of(event, phase.counters().step, fields));
    }
    void write_events(frugal::Phase const& phase) {
      while (events_ < phase.events().size()) {
        frugal::Event const& event = phase.events()[events_++];
        append(phase, line_of(event.name, event.at.step, event.fields));
      }
    }
    // [end state]

    // [begin write]
    void append(frugal::Phase const& phase, std::string const& line) {
      try {
        std::ofstream file(path_,
                           std::ios::app | std::ios::binary);  // made again if it was deleted
        if (cut_to_ && std::filesystem::file_size(path_) > *cut_to_) {
          std::filesystem::resize_file(path_, *cut_to_);
        }
        if (!file.write(line.data(), static_cast<std::streamsize>(line.size())).flush()) {
          throw std::runtime_error("cannot write to " + path_.string());
        }
        size_ = std::filesystem::file_size(path_);
        cut_to_.reset();
      } catch (std::exception const& error) {
        cut_to_ = size_;  // without the half of a line, if the disk took that
        if (!std::exchange(warned_, true)) {
          phase.warn("JobLines: " + std::string(error.what()) +
                     ": the run continues, and each later line is tried again");
        }
      }
    }
    // [end write]

    Cadence every_;
    std::filesystem::path path_;
    std::uint64_t size_ = 0;               ///< bytes of whole lines
    std::optional<std::uint64_t> cut_to_;  ///< bytes that stay, before the next line
    std::size_t events_ = 0;               ///< that are written
    std::optional<std::uint64_t> ended_at_;
    bool ready_ = false;
    bool warned_ = false;
  };
};

}  // namespace mine

// [begin use]
int main() {
  namespace fr = frugal;
  torch::manual_seed(0);
  fr::TensorDataset train(torch::randn({512, 8}), torch::randint(0, 3, {512}), {.batch = 32});
  fr::TensorDataset valid(torch::randn({128, 8}), torch::randint(0, 3, {128}), {.batch = 64});

  fr::Trainer trainer{torch::nn::Linear(8, 3),
                      fr::CrossEntropy{},
                      fr::Settings{.run_dir = "runs/writing_a_sink", .epochs = 2},
                      fr::Optimize<fr::AdamW>{},
                      fr::Validate<fr::Every<1, fr::Epoch>, fr::Accuracy>{},
                      fr::Checkpoint<fr::Every<10>>{},
                      mine::JobLines<fr::Every<10>>{}};
  std::cout << trainer.fit(train, valid) << '\n';  // runs/writing_a_sink/job.jsonl
  return 0;
}
// [end use]
