// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/load_weights.hpp>

#include <algorithm>
#include <cstddef>
#include <frugal/base/file.hpp>
#include <frugal/checkpoint/manifest.hpp>
#include <frugal/checkpoint/tensor_files.hpp>
#include <frugal/core/libtorch/finite.hpp>
#include <frugal/core/libtorch/fixed_tensors.hpp>
#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/core/state/module_tensors.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/model/lora/adapter.hpp>
#include <frugal/model/torch_file.hpp>
#include <frugal/policy/checkpoint/weights.hpp>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE StoredWeights open_safetensors(std::filesystem::path const& path) {
  auto const files = std::make_shared<TensorFiles const>(TensorFiles::open(path));
  StoredWeights weights(path.string());
  for (std::size_t i = 0; i < files->size(); ++i) weights.add(stored_weight((*files)[i]));
  weights.fixed = files->metadata(fixed_key).value_or("");
  weights.keep(files);
  return weights;
}

FRUGAL_INLINE StoredWeights open_weight_file(std::filesystem::path const& path,
                                             std::string const& within) {
  std::string begin;
  {
    MappedFile const file(path, MappedFile::Access::normal);
    auto const bytes = file.bytes().first(std::min<std::size_t>(file.bytes().size(), 16));
    begin.assign(reinterpret_cast<char const*>(bytes.data()), bytes.size());
  }
  if (begin.starts_with(TorchFile::magic)) return TorchFile::read(path, within);
  if (TorchFile::is_legacy(begin)) {
    throw FormatError({.what = "the file has the format of torch.save before PyTorch 1.6",
                       .where = path.string(),
                       .why = "it is a bare pickle, not an archive",
                       .fix = "Save it again in Python: torch.save(torch.load(FILE), FILE)."});
  }
  return open_safetensors(path);
}

FRUGAL_INLINE StoredWeights open_weights(std::filesystem::path const& path, Weights which,
                                         std::string const& within) {
  auto const has = [&](std::string_view name) {
    std::error_code ignored;
    return std::filesystem::exists(path / name, ignored);
  };
  auto const open = [&](std::filesystem::path const& file) {
    return file.string().ends_with(TensorIndex::ending) ? open_safetensors(file)
                                                        : open_weight_file(file, within);
  };
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return open(path);
  if (has(weights_index_file) || has(weights_file) || has(Manifest::file_name) ||
      has("checkpoints")) {
    return open(weights_in(path, which));
  }
  if (has(torch_weights_file)) return open_weight_file(path / torch_weights_file, within);
  throw StoreError({.what = "the folder has no weights",
                    .where = path.string(),
                    .why = std::string("it has neither ") + weights_index_file + ", " +
                           weights_file + " nor " + torch_weights_file + ", and no checkpoints",
                    .fix = "Give the folder of a model, of a run or of a checkpoint, or a file."});
}

FRUGAL_INLINE std::optional<std::vector<std::string>> texts_of_stars(std::string_view pattern,
                                                                     std::string_view name) {
  std::size_t const star = pattern.find('*');
  if (star == std::string_view::npos) {
    if (pattern == name) return std::vector<std::string>{};
    return std::nullopt;
  }
  if (!name.starts_with(pattern.substr(0, star))) return std::nullopt;
  std::string_view const rest = pattern.substr(star + 1);
  for (std::size_t end = star; end <= name.size(); ++end) {
    if (auto more = texts_of_stars(rest, name.substr(end))) {
      more->insert(more->begin(), std::string(name.substr(star, end - star)));
      return more;
    }
  }
  return std::nullopt;
}

FRUGAL_INLINE std::string with_texts(std::string_view pattern,
                                     std::vector<std::string> const& texts) {
  std::string name;
  std::size_t next = 0;
  for (char const c : pattern) {
    if (c == '*') {
      name += texts[next++];
    } else {
      name += c;
    }
  }
  return name;
}

FRUGAL_INLINE std::string name_in_file(WeightRules const& rules, std::string const& name) {
  for (RenameWeights const& rename : rules.rename) {
    if (auto const texts = texts_of_stars(rename.to, name)) return with_texts(rename.from, *texts);
  }
  return name;
}

FRUGAL_INLINE void require_rules(WeightRules const& rules, std::vector<std::string> const& names) {
  std::string const where = "WeightRules::";
  for (RenameWeights const& rename : rules.rename) {
    if (std::ranges::count(rename.from, '*') != std::ranges::count(rename.to, '*')) {
      throw SettingsError(
          {.what = "'" + rename.from + "' and '" + rename.to + "' have different numbers of stars",
           .where = where + "rename",
           .why = "each star of one is the text of a star of the other",
           .fix = "Write as many in both, or two rules."});
    }
    NamePatterns({rename.to}).require_in(names, where + "rename", "tensors of the module");
  }
  rules.parts.require_in(names, where + "parts", "tensors of the module");
  rules.transpose.require_in(names, where + "transpose", "tensors of the module");
  rules.resize.require_in(names, where + "resize", "tensors of the module");
}

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
