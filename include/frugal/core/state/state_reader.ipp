// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/state/state_reader.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <locale>
#include <sstream>

namespace frugal {

FRUGAL_INLINE bool StateReader::forgets(std::string const& who, std::string_view metric) {
  std::size_t const slash = metric.rfind('/');
  std::string_view const source =
      slash == std::string_view::npos ? std::string_view() : metric.substr(0, slash);
  if (!other_validation.contains(source)) return false;
  forgotten_.insert(who + "'s best \"" + std::string(metric) + "\"");
  return true;
}

FRUGAL_INLINE std::optional<std::string> StateReader::unread(std::string const& scope) const {
  std::string const prefix = scope.empty() ? scope : scope + "/";
  for (auto each = memory_.values.lower_bound(prefix);
       each != memory_.values.end() && each->first.starts_with(prefix); ++each) {
    if (!is_read(each->first) && !is_dispensable(each->first)) return each->first;
  }
  return std::nullopt;
}

FRUGAL_INLINE bool StateReader::has_read(std::string const& scope) const {
  std::string const prefix = scope + "/";
  auto const in = [&](std::set<std::string_view> const& paths) {
    auto const first = paths.lower_bound(prefix);
    return first != paths.end() && first->starts_with(prefix);
  };
  return in(read_) || in(before_);
}

FRUGAL_INLINE void StateReader::pass_over(std::string const& scope) {
  std::string const prefix = scope + "/";
  for (auto each = memory_.values.lower_bound(prefix);
       each != memory_.values.end() && each->first.starts_with(prefix); ++each) {
    read_.insert(each->first);
  }
}

FRUGAL_INLINE void StateReader::load_again() {
  before_.merge(read_);
  read_.clear();
}

FRUGAL_INLINE bool StateReader::holds(std::string const& name) const {
  return memory_.values.contains(path_(name));
}

FRUGAL_INLINE bool StateReader::has(std::string const& scope) const {
  if (to_) return false;
  std::string const prefix = path_(scope) + "/";
  auto const first = memory_.values.lower_bound(prefix);
  return first != memory_.values.end() && first->first.starts_with(prefix);
}

FRUGAL_INLINE void StateReader::part(std::string const& name, at::Tensor& mine,
                                     TensorPart const& which) {
  std::string const path = path_(name);
  require_first(path);
  auto const saved = memory_.tensors.find(path);
  bool const is_whole = saved != memory_.tensors.end() && saved->second.sizes() == which.sizes;
  if (!is_whole) {
    load(path, mine);
    return;
  }
  if (is_absent(path)) return mine.reset();
  at::NoGradGuard const no_gradient;
  at::Tensor whole =
      at::empty_strided(which.sizes, which.strides, saved->second.options()).copy_(saved->second);
  at::Tensor own = detail::in_memory_order(whole).narrow(0, which.first, which.count);
  if (mine.defined() && mine.dim() != 1 && mine.numel() == which.count) {
    own = own.as_strided(mine.sizes(), mine.strides(), own.storage_offset());
  }
  fill(path, mine, own);
}

FRUGAL_INLINE bool StateReader::is_dispensable(std::string const& path) const {
  for (auto end = path.find('/'); end != std::string::npos; end = path.find('/', end + 1)) {
    if (memory_.values.contains(path.substr(0, end + 1) + "dispensable")) return true;
  }
  return false;
}

FRUGAL_INLINE void StateReader::require_first(std::string const& path) const {
  if (!read_.contains(path)) return;
  throw StateError({.what = "two values are loaded from one name",
                    .where = path,
                    .why = "one value was saved under it, and another has been loaded from it",
                    .fix = "In persist(), give the second another name or its own scope. To load a "
                           "whole state again, use a new StateReader."});
}

FRUGAL_INLINE StateDict::Value const& StateReader::at(std::string const& path) {
  auto const found = memory_.values.find(path);
  if (found == memory_.values.end()) refuse(path, "it was not saved");
  read_.insert(found->first);
  return found->second;
}

FRUGAL_INLINE bool StateReader::is_absent(std::string const& path) {
  return std::holds_alternative<std::monostate>(at(path));
}

FRUGAL_INLINE bool StateReader::truth_value(std::string const& path) {
  return get<bool>(path, "a truth value");
}

FRUGAL_INLINE double StateReader::real_number(std::string const& path) {
  return get<double>(path, "a real number");
}

FRUGAL_INLINE std::int64_t StateReader::signed_integer(std::string const& path) {
  return get<std::int64_t>(path, "a signed integer");
}

FRUGAL_INLINE std::uint64_t StateReader::unsigned_integer(std::string const& path) {
  return get<std::uint64_t>(path, "an unsigned integer");
}

FRUGAL_INLINE std::string StateReader::text(std::string const& path) {
  return get<std::string>(path, "a text");
}

FRUGAL_INLINE std::uint64_t StateReader::list_size(std::string const& path) {
  std::uint64_t const size = get<std::uint64_t>(path, "a list");
  // Each item is at least one value: a larger count would only waste memory.
  if (size > memory_.values.size()) refuse(path, "its items were not saved");
  return size;
}

FRUGAL_INLINE void StateReader::load_tensor(std::string const& path, at::Tensor& value) {
  auto const saved = memory_.tensors.find(path);
  if (saved == memory_.tensors.end()) refuse(path, "its tensor was not saved");
  fill(path, value, saved->second);
}

FRUGAL_INLINE void StateReader::fill(std::string const& path, at::Tensor& value,
                                     at::Tensor const& source) {
  if (!value.defined()) {
    value = source.clone();
    return;
  }
  if (value.sizes() != source.sizes() || value.scalar_type() != source.scalar_type()) {
    std::ostringstream why;
    why.imbue(std::locale::classic());
    why << "saved as " << source.sizes() << ' ' << source.scalar_type() << ", here it is "
        << value.sizes() << ' ' << value.scalar_type();
    refuse(path, why.str());
  }
  at::NoGradGuard const no_gradient;
  if (to_ && value.device() != *to_) {
    value = at::empty_like(value, at::TensorOptions().device(*to_), at::MemoryFormat::Preserve);
  }
  value.copy_(source);
}

FRUGAL_INLINE void StateReader::refuse(std::string const& path, std::string const& why) {
  throw StateError({.what = "saved state does not fit",
                    .where = path,
                    .why = why,
                    .fix = "Resume with the model and recipe that saved it."});
}

}  // namespace frugal
