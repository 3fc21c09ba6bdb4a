// SPDX-License-Identifier: Apache-2.0
// needs: tensorboard
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include <frugal/core/run/phases.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/report/sink/file.hpp>
#include <frugal/report/sink/record.hpp>
#include <frugal/report/sink/state.hpp>
#include <frugal/report/sink/tensorboard_writer.hpp>
#include <frugal/report/sink/tfevent.hpp>

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
