// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/structured.hpp>

#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/core/libtorch/modes.hpp>
#include <frugal/inline.hpp>

#include <cstddef>
#include <exception>
#include <optional>

namespace frugal {

FRUGAL_INLINE std::ostream& operator<<(std::ostream& out, CutReport const& report) {
  for (CutRow const& row : report.rows) {
    out << row.layers << ": " << row.before << " -> " << row.after;
    if (!row.why.empty()) out << ", " << row.why;
    out << '\n';
  }
  return out << report.parameters_before << " -> " << report.parameters_after << " parameters";
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE std::int64_t count_parameters(torch::nn::Module const& module) {
  std::int64_t all = 0;
  for (at::Tensor const& each : each_once(module.parameters())) all += each.numel();
  return all;
}

FRUGAL_INLINE std::string try_cut(torch::nn::Module& module, CutGroup const& group,
                                  at::Tensor const& keep,
                                  std::function<at::Tensor()> const& forward) {
  at::NoGradGuard const no_gradients;
  KeptTensors kept;
  try {
    mask_group(group, keep, kept);
    at::Tensor const masked = forward().to(at::kDouble);
    kept.put_back();
    cut_group(group, keep, kept);
    sync_options(module);
    at::Tensor const found = forward().to(at::kDouble);
    // Of outputs of any size: a network whose outputs are small is compared as closely.
    if (found.sizes() == masked.sizes() &&
        (found - masked).abs().max().item<double>() <= 1e-4 * masked.abs().max().item<double>()) {
      return {};
    }
    kept.put_back();
    sync_options(module);
    return "without them the output is not that of the masked module";
  } catch (std::exception const& error) {
    kept.put_back();
    sync_options(module);
    auto const* const of_torch = dynamic_cast<c10::Error const*>(&error);
    std::string const text =
        of_torch == nullptr ? error.what() : of_torch->what_without_backtrace();
    return "without them the forward pass fails: " + text.substr(0, text.find('\n'));
  } catch (...) {
    kept.put_back();
    sync_options(module);
    throw;
  }
}

FRUGAL_INLINE CutReport cut_all(torch::nn::Module& module, CutSettings const& settings,
                                std::function<at::Tensor()> const& forward) {
  register_members(module);
  KeepModes const modes(module);
  module.eval();
  CutReport report{.parameters_before = count_parameters(module)};
  AxisTrace trace(module);
  trace.run(forward);
  std::vector<CutGroup> const groups = groups_of(module, trace);
  if (settings.where) {
    std::vector<std::string> names;
    for (CutGroup const& group : groups) {
      for (CutPlace const& each : group.places) {
        if (each.makes) names.push_back(each.name);
      }
    }
    settings.where->require_in(names, "prune_structured", "weights that can lose rows");
  }
  // All are ranked before one is cut, so that their order has no effect.
  std::vector<at::Tensor> importances;
  for (CutGroup const& group : groups) {
    importances.push_back(importance_of(group, settings.rank));
  }
  bool any = false;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    CutGroup const& group = groups[i];
    CutRow row{.layers = group.name(), .before = group.size, .after = group.size, .why = group.why};
    std::size_t chosen = 0;
    std::size_t makers = 0;
    for (CutPlace const& each : group.places) {
      if (!each.makes) continue;
      ++makers;
      if (!settings.where || settings.where->matches(each.name)) ++chosen;
    }
    if (chosen == 0) continue;
    if (row.why.empty() && chosen != makers)
      row.why = "the patterns leave out some of these layers";
    at::Tensor const& importance = importances[i];
    if (row.why.empty() && !importance.defined()) row.why = "there is no BatchNorm to rank by";
    if (row.why.empty()) {
      any = true;
      std::int64_t const after = width_after(group, settings);
      if (after == group.size) {
        row.why = "the width that remains is rounded up to all of them";
      } else {
        at::Tensor const least =
            std::get<1>(at::topk(importance, group.size - after, 0, /*largest=*/false));
        at::Tensor const keep = at::ones({group.size}, at::kBool).index_fill_(0, least, false);
        row.why = try_cut(module, group, keep, forward);
        if (row.why.empty()) row.after = after;
      }
    }
    report.rows.push_back(std::move(row));
  }
  for (at::Tensor& each : module.parameters()) each.mutable_grad().reset();
  report.parameters_after = count_parameters(module);
  if (any) return report;
  std::string why;
  for (CutRow const& row : report.rows)
    why += (why.empty() ? "" : "; ") + row.layers + ": " + row.why;
  throw ModuleError({.what = "no channel and no head of this module can be removed",
                     .where = "prune_structured",
                     .why = why.empty() ? "no layer takes what another one makes" : why,
                     .fix = "Look at the operators that are named, or prune single weights with "
                            "Prune<Magnitude, Sparsity<0.9>>."});
}

}  // namespace frugal::detail
