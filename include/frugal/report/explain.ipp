// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/explain.hpp>

#include <frugal/base/number_texts.hpp>
#include <frugal/base/text_width.hpp>
#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/inline.hpp>

#include <cstddef>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE PlanRows plan_head() { return {{"#", "policy", "lever", "cost", "docs/"}}; }

FRUGAL_INLINE void add_plan_row(PlanRows& rows, std::string& defaults, bool null, std::string name,
                                About const& about, std::string_view page) {
  if (null) {
    defaults += (defaults.empty() ? "" : ", ") + name;
    return;
  }
  std::string_view const lever = about.term == Term::none ? "" : name_of(about.term);
  rows.push_back({std::to_string(rows.size()), std::move(name), std::string(lever),
                  std::string(about.cost), std::string(page)});
}

FRUGAL_INLINE void print_paragraph(std::ostream& out, std::string_view text) {
  char const* before = "";
  for (std::string const& line : watch::wrapped(text, 96)) {
    out << before << line << '\n';
    before = "    ";
  }
}

FRUGAL_INLINE void print_caution(std::ostream& out, std::string_view kind,
                                 std::string const& text) {
  if (text.empty()) return;
  print_paragraph(out, "caution: " + std::string(kind) + (kind.empty() ? "" : ": ") + text);
}

FRUGAL_INLINE void print_finding(std::ostream& out, std::string_view kind,
                                 std::string const& text) {
  if (!text.empty()) out << "found: " << kind << ": " << text << '\n';
}

FRUGAL_INLINE void print_plan(std::ostream& out, PlanRows const& rows, std::string const& defaults,
                              int host_syncs) {
  if (rows.size() > 1) out << watch::columns(rows, {2, 26, 19, 19, 26});
  if (!defaults.empty()) print_paragraph(out, "defaults: " + defaults);
  out << "host syncs per step: " << host_syncs << '\n';
}

FRUGAL_INLINE std::string run_line(std::string const& name, Settings const& settings,
                                   at::Device device, std::int64_t parameters) {
  std::string text = name + ": " + std::to_string(parameters) + " parameters";
  if (settings.epochs || !settings.steps) {
    std::uint64_t const epochs = settings.epochs.value_or(1);
    text += ", " + std::to_string(epochs) + (epochs == 1 ? " epoch" : " epochs");
  }
  if (settings.steps) {
    text += settings.epochs ? ", at most " : ", ";
    text += std::to_string(*settings.steps) + (*settings.steps == 1 ? " step" : " steps");
  }
  text += ", seed " + std::to_string(settings.seed) + ", on " + device.str();
  return settings.run_dir.empty() ? text : text + ", in " + settings.run_dir.string();
}

FRUGAL_INLINE CheckpointBytes checkpoint_bytes(torch::nn::Module const& module, bool averaged) {
  CheckpointBytes bytes;
  for (at::Tensor const& tensor : Parameters::of(module).tensors) {
    auto const size = static_cast<double>(tensor.nbytes());
    bytes.parameters += tensor.numel();
    bytes.weights += size;
    if (tensor.requires_grad()) bytes.trained += size;
    if (averaged) bytes.averages += static_cast<double>(bytes_of_average(tensor));
  }
  for (at::Tensor const& buffer : each_once(module.buffers())) {
    bytes.weights += static_cast<double>(buffer.nbytes());
  }
  return bytes;
}

FRUGAL_INLINE void print_checkpoint(std::ostream& out, CheckpointBytes const& bytes,
                                    bool averaged) {
  double const kept = bytes.keeps_best ? bytes.weights : 0;
  std::string extra = averaged ? ", " + bytes_text(bytes.averages) + " average" : "";
  if (bytes.keeps_best) extra += ", " + bytes_text(kept) + " best weights";
  if (bytes.optimizer) {
    out << "checkpoint: " << bytes_text(bytes.weights + *bytes.optimizer + bytes.averages + kept)
        << " (" << bytes_text(bytes.weights) << " weights and buffers, "
        << bytes_text(*bytes.optimizer) << " optimizer" << extra << ")\n";
  } else {
    out << "checkpoint: " << bytes_text(bytes.weights) << " weights and buffers" << extra
        << ", and what the optimizer keeps\n";
  }
}

}  // namespace frugal::detail
