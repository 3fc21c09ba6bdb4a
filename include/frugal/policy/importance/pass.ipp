// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/importance/pass.hpp>

#include <frugal/inline.hpp>

#include <algorithm>
#include <cmath>
#include <string>

namespace frugal {

FRUGAL_INLINE void ImportanceTable::begin_fit() {
  if (in_fit_.exchange(true)) {
    throw ConcurrentFitError(
        {.what = "two fits share the losses of an Importance",
         .where = "Importance",
         .why = "each would draw by what the other has learnt",
         .fix = "Make an Importance, with its source and objective, for each of them."});
  }
  forget();
}

FRUGAL_INLINE void ImportanceTable::end_fit() {
  records_ = false;
  in_fit_ = false;
  read_waiting();
}

FRUGAL_INLINE void ImportanceTable::record(at::Tensor const& index_B, at::Tensor const& loss_B) {
  waiting_.emplace_back(index_B, loss_B.detach());
  if (waiting_.size() >= most_waiting) read_waiting();
}

FRUGAL_INLINE void ImportanceTable::begin(std::uint64_t epoch) {
  read_waiting();
  if (epoch_ != epoch) {
    drawn_by_N_.copy_(latest_N_);
    epoch_ = epoch;
    is_built_ = false;
  }
  if (!is_built_) build();
}

FRUGAL_INLINE std::shared_ptr<ImportanceDraws const> ImportanceTable::draws() const {
  std::lock_guard const lock(mutex_);
  return draws_;
}

FRUGAL_INLINE void ImportanceTable::forget() {
  waiting_.clear();
  latest_N_.fill_(std::nan(""));
  drawn_by_N_.fill_(std::nan(""));
  epoch_ = none;
  is_built_ = false;
}

FRUGAL_INLINE void ImportanceTable::read_waiting() {
  if (waiting_.empty()) return;
  std::vector<at::Tensor> index, loss;
  for (auto& [index_B, loss_B] : waiting_) {
    index.push_back(index_B.to(at::kLong));
    loss.push_back(loss_B.to(at::kFloat));
  }
  waiting_.clear();
  // In their order: of a sample that was drawn twice the later loss counts.
  at::Tensor const all_index = at::cat(index).contiguous();
  at::Tensor const all_loss = at::cat(loss).cpu().contiguous();
  auto const* const at = static_cast<std::int64_t const*>(all_index.const_data_ptr());
  auto const* const of = static_cast<float const*>(all_loss.const_data_ptr());
  auto* const latest = static_cast<float*>(latest_N_.mutable_data_ptr());
  for (std::int64_t i = 0; i < all_index.numel(); ++i) latest[at[i]] = of[i];
}

FRUGAL_INLINE void ImportanceTable::build() {
  auto const* const loss = static_cast<float const*>(drawn_by_N_.const_data_ptr());
  std::uint64_t const n = samples();
  double sum = 0;
  double seen = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    if (!std::isfinite(loss[i])) continue;
    sum += std::max(0.0F, loss[i]);
    ++seen;
  }
  // A sample that was never drawn counts as one of mean loss.
  double const mean = seen > 0 ? sum / seen : 0;
  double const total = sum + (static_cast<double>(n) - seen) * mean;
  auto draws = std::make_shared<ImportanceDraws>();
  draws->probabilities.resize(n);
  draws->weights.resize(n);
  for (std::uint64_t i = 0; i < n; ++i) {
    double const of = std::isfinite(loss[i]) ? std::max(0.0F, loss[i]) : mean;
    double const by_loss = total > 0 ? of / total : 1 / static_cast<double>(n);
    double const p = uniform_ / static_cast<double>(n) + (1 - uniform_) * by_loss;
    draws->probabilities[i] = p;
    draws->weights[i] = static_cast<float>(1 / (static_cast<double>(n) * p));
  }
  draws->table = detail::AliasTable(draws->probabilities);
  std::lock_guard const lock(mutex_);
  draws_ = std::move(draws);
  is_built_ = true;
}

FRUGAL_INLINE void ImportancePass::seek(Cursor const& cursor) {
  pass_.seek(cursor);
  cursor_ = cursor;
  table_->begin(cursor.epoch);
}

FRUGAL_INLINE void ImportancePass::identify(DataIdentity& to) const {
  pass_.identify(to, "ImportancePass", true);
  to.add("uniform", detail::fixed(table_->uniform(), 6));
}

FRUGAL_INLINE LoaderOptions ImportancePass::unshuffled(LoaderOptions loading) {
  loading.shuffle = false;
  return loading;
}

}  // namespace frugal
