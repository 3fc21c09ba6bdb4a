// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/load_weights.hpp>

#include <frugal/base/file.hpp>
#include <frugal/core/libtorch/fixed_tensors.hpp>
#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/core/libtorch/number_range.hpp>
#include <frugal/core/state/module_tensors.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/model/lora/layers.hpp>
#include <frugal/policy/checkpoint/weights.hpp>

namespace frugal::detail {

FRUGAL_INLINE WeightPlan::WeightPlan(torch::nn::Module& module, StoredWeights const& stored,
                                     WeightRules const& rules)
    : stored_(stored), rules_(rules) {
  register_members(module);
  loaded_.file = stored.place();
  visit_all_tensors(module, [&](std::string const& name, at::Tensor const& tensor) {
    tensors_.emplace_back(name, tensor);
  });
  if (!stored.fixed.empty()) require_base(fixed_identity(module));
  std::vector<std::string> names;
  for (auto const& [name, tensor] : tensors_) names.push_back(name);
  require_rules(rules, names);
  for (auto const& [name, tensor] : tensors_) find(name, tensor);
  report();
  require_unmerged(module);
}

FRUGAL_INLINE LoadedWeights WeightPlan::copy() {
  at::NoGradGuard const no_gradients;
  for (Copy const& each : copies_) require_range(each);
  for (Copy const& each : copies_) {
    copy(each);
    MappedFile::release(each.from->bytes);
  }
  return std::move(loaded_);
}

FRUGAL_INLINE void WeightPlan::find(std::string const& name, at::Tensor const& tensor) {
  std::string const there = name_in_file(rules_, name);
  StoredWeight const* from = nullptr;
  if (!rules_.prefix.empty()) from = stored_.find(rules_.prefix + there);
  if (from == nullptr) from = stored_.find(there);
  if (from != nullptr) used_.insert(from);
  if (!rules_.parts.patterns().empty() && !rules_.parts.matches(name)) return;
  // A checkpoint over a base leaves that out, and the module has it.
  if (from == nullptr && !stored_.fixed.empty() && is_fixed(tensor)) return;
  if (from == nullptr) {
    absent_.emplace_back(name, tensor);
    return;
  }
  Copy copy{name, tensor, from, rules_.transpose.matches(name)};
  if (std::string const why = misfit(copy); !why.empty()) {
    loaded_.misshapen.push_back(name);
    if (!rules_.allow_misshapen.matches(name)) misfits_.push_back(why);
    return;
  }
  auto const [tied, first] = filled_.emplace(tensor.unsafeGetTensorImpl(), copies_.size());
  if (first) {
    if (is_resized(copy)) loaded_.resized.push_back(name);
    copies_.push_back(std::move(copy));
  } else if (!same(copies_[tied->second], copy)) {
    misfits_.push_back("'" + copies_[tied->second].name + "' and '" + name +
                       "' differ there and are one tied tensor here");
  }
}

FRUGAL_INLINE void WeightPlan::require_base(std::string const& here) const {
  if (here.empty() || here == stored_.fixed) return;
  throw StateError(
      {.what = "these weights were trained over another base",
       .where = stored_.place(),
       .why = "the fixed weights have the hash " + stored_.fixed + " there and " + here + " here",
       .fix = "Load the base that the run began with into the module first."});
}

FRUGAL_INLINE void WeightPlan::require_unmerged(torch::nn::Module const& module) const {
  auto const all = find_adapters(module);
  for (Copy const& copy : copies_) {
    FoundAdapter const* const sum = merged_into(copy.to, all);
    if (sum == nullptr) continue;
    throw StateError({.what = "the weight of '" + sum->layer.name + "' includes the adapter '" +
                              sum->adapter->settings().name + "', which is merged",
                      .where = stored_.place(),
                      .why = "the file would replace both, and the module would count the adapter "
                             "as merged still",
                      .fix = "Call unmerge(module) before you load a base, or "
                             "remove_adapters(module) before you load merged weights."});
  }
}

FRUGAL_INLINE std::string WeightPlan::misfit(Copy const& copy) const {
  std::string const both = "'" + copy.name + "' is " + copy.from->type_and_shape() + " there" +
                           (copy.transposed ? ", transposed," : "") + " and " +
                           type_and_shape(copy.to) + " here" +
                           (part_of(copy.to) ? ", a part of " + sizes_text(copy.to) : "");
  std::vector<std::int64_t> sizes = copy.from->sizes;
  if (copy.transposed) {
    if (sizes.size() != 2) return both + ", and only matrices are transposed";
    std::swap(sizes[0], sizes[1]);
  }
  bool const resizable = !part_of(copy.to) && rules_.resize.matches(copy.name) && !sizes.empty() &&
                         sizes[0] != 0 && sizes.size() == static_cast<std::size_t>(copy.to.dim());
  if (resizable) sizes[0] = copy.to.size(0);
  if (at::IntArrayRef(sizes) != whole_sizes(copy.to)) return both;
  if (!convertible(copy.from->type, copy.to.scalar_type())) {
    return both + ", a type that is not converted";
  }
  return {};
}

FRUGAL_INLINE void WeightPlan::report() {
  std::vector<std::string> missing, unexpected;
  for (auto const& [name, tensor] : tensors_) {
    // Programs that store a tied tensor once, under one of its names, fill the others with it.
    if (filled_.contains(tensor.unsafeGetTensorImpl())) loaded_.matched.push_back(name);
  }
  for (auto const& [name, tensor] : absent_) {
    if (filled_.contains(tensor.unsafeGetTensorImpl())) continue;
    loaded_.missing.push_back(name);
    std::string const there = name_in_file(rules_, name);
    if (rules_.allow_missing.matches(name)) continue;
    missing.push_back("'" + name + "'" + (there == name ? "" : " ('" + there + "' there)"));
  }
  for (StoredWeight const& each : stored_.all()) {
    if (used_.contains(&each)) continue;
    loaded_.unexpected.push_back(each.name);
    if (!rules_.allow_unexpected.matches(each.name)) unexpected.push_back("'" + each.name + "'");
  }
  std::string why;
  add(why, missing, "missing there: ");
  add(why, unexpected, "unexpected there: ");
  add(why, misfits_, "misshapen: ");
  if (why.empty() && copies_.empty()) why = "no tensor there has the name of a tensor here";
  if (why.empty()) return;
  throw StateError({.what = "these weights do not fit the module",
                    .where = stored_.place(),
                    .why = why,
                    .fix = "Load the weights of this module, or say in WeightRules how names are "
                           "mapped (rename, prefix) and what may differ (allow_missing, "
                           "allow_unexpected, allow_misshapen)."});
}

FRUGAL_INLINE void WeightPlan::add(std::string& text, std::vector<std::string> const& names,
                                   std::string const& title) {
  constexpr std::size_t most = 50;  // of a model with thousands, these show what is wrong
  if (names.empty()) return;
  text += (text.empty() ? "" : "; ") + title;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  if (names.size() > most) text += " and " + std::to_string(names.size() - most) + " more";
}

FRUGAL_INLINE void WeightPlan::require_range(Copy const& copy) const {
  at::ScalarType const type = copy.to.scalar_type();
  if (copy.to.numel() == 0 || largest_number(copy.from->type) <= largest_number(type)) return;
  auto const reach = beyond_range(copy.from->tensor(), type);
  MappedFile::release(copy.from->bytes);
  if (!reach) return;
  throw StateError({.what = "a weight is too large for the module's type",
                    .where = stored_.place(),
                    .why = "'" + copy.name + "' has " + std::to_string(*reach) + ", and " +
                           type_and_shape(copy.to) + " ends at " +
                           std::to_string(largest_number(type)),
                    .fix = "Load into a module of a wider type, such as BF16."});
}

FRUGAL_INLINE void WeightPlan::copy(Copy const& each) {
  at::Tensor const saved = own_part(each.stored(), each.to);
  if (each.to.dim() == 0 || saved.size(0) == each.to.size(0)) {
    each.to.copy_(saved);
    return;
  }
  std::int64_t const known = std::min(saved.size(0), each.to.size(0));
  each.to.narrow(0, 0, known).copy_(saved.narrow(0, 0, known));
  if (known == each.to.size(0)) return;
  each.to.narrow(0, known, each.to.size(0) - known).copy_(mean_row(saved));
}

FRUGAL_INLINE at::Tensor WeightPlan::mean_row(at::Tensor const& saved) {
  constexpr std::int64_t block = 4096;
  at::Tensor sum = at::zeros(saved.sizes().slice(1), at::kDouble);
  for (std::int64_t row = 0; row < saved.size(0); row += block) {
    std::int64_t const rows = std::min(block, saved.size(0) - row);
    sum += saved.narrow(0, row, rows).to(at::kDouble).sum(0);
  }
  return sum / static_cast<double>(saved.size(0));
}

}  // namespace frugal::detail
