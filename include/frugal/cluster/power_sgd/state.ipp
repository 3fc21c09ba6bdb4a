// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/cluster/power_sgd/state.hpp>

#include <frugal/inline.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <sstream>
#include <tuple>

namespace frugal::detail {

FRUGAL_INLINE void orthogonalize(at::Tensor const& columns, double epsilon) {
  std::int64_t const count = columns.size(1);
  if (count > 2) {
    columns.copy_(std::get<0>(at::linalg_qr(columns)));
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    at::Tensor const column = columns.narrow(1, i, 1);
    at::Tensor const norm = at::linalg_vector_norm(column);
    column.div_(epsilon == 0 ? norm.masked_fill(norm.eq(0), 1) : norm + epsilon);
    if (i + 1 == count) continue;
    at::Tensor const rest = columns.narrow(1, i + 1, count - i - 1);
    rest.sub_((column * rest).sum(0, /*keepdim=*/true) * column);
  }
}

FRUGAL_INLINE void PowerSGDMemory::place(std::vector<at::Tensor> const& parameters,
                                         std::vector<at::Tensor> const& like) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    auto const found = all_of_them_.find(name_of(parameters[i]));
    if (found == all_of_them_.end()) continue;
    auto& [error, q] = found->second;
    if (q.defined()) q = q.to(like[i].device());
    if (!error.defined()) continue;
    if (error.device() == like[i].device() && error.strides() == like[i].strides()) continue;
    error = at::empty_like(like[i], error.options().device(like[i].device()),
                           at::MemoryFormat::Preserve)
                .copy_(error);
  }
}

FRUGAL_INLINE void PowerSGDMemory::require_size(std::string const& name,
                                                at::Tensor const& error) const {
  auto const found = sizes_.find(name);
  if (found == sizes_.end() || error.sizes() == found->second) return;
  std::ostringstream why;
  why << "its error was saved as " << error.sizes() << ", and the parameter is "
      << at::IntArrayRef(found->second);
  throw StateError({.what = "saved state does not fit",
                    .where = "Wire<PowerSGD<R>>, " + name,
                    .why = why.str(),
                    .fix = "Resume with the model that saved it."});
}

FRUGAL_INLINE void FactoredSum::lay_out(std::vector<Matrix> matrices) {
  matrices_ = std::move(matrices);
  if (matrices_.empty()) return;
  sort_as_torch();
  std::vector<at::Tensor> like;
  std::int64_t ps = 0, qs = 0;
  for (Matrix const& each : matrices_) {
    like.push_back(each.parameter);
    ps += each.shape.rows * each.shape.rank;
    qs += each.shape.columns * each.shape.rank;
    if (!settings_.error_feedback) memory_.of(each.parameter).error.reset();
  }
  flat_.emplace(like, 1);
  for (std::size_t k = 0; k < matrices_.size(); ++k) {
    matrices_[k].place = flat_->views()[k];
    matrices_[k].gradient = as_matrix(matrices_[k].place, matrices_[k].shape);
  }
  p_ = at::empty({ps}, flat_->flat().options());
  q_ = at::empty({qs}, flat_->flat().options());
}

FRUGAL_INLINE double FactoredSum::largest(std::vector<bool> const& has) const {
  std::vector<at::Tensor> own;
  for (Matrix const& each : matrices_) {
    if (has[each.index]) own.push_back(each.gradient);
  }
  if (own.empty()) return 0;
  at::NoGradGuard const no_gradients;
  return at::stack(at::_foreach_norm(own, std::numeric_limits<double>::infinity()))
      .max()
      .item<double>();
}

FRUGAL_INLINE void FactoredSum::sum(std::vector<bool> const& has, std::vector<bool> const& anywhere,
                                    double weight) {
  std::vector<Matrix const*> active;
  for (Matrix const& each : matrices_) {
    if (anywhere[each.index]) active.push_back(&each);
  }
  if (active.empty()) return;
  draw_factors();
  double const epsilon = settings_.orthogonalization_epsilon;
  double const to_mean = static_cast<double>(all_.size()) / weight;
  std::vector<at::Tensor> xs;
  for (Matrix const* each : active) xs.push_back(x_of(*each, has[each->index], to_mean));
  std::vector<at::Tensor> ps = views_of(p_, active, &LowRank::rows);
  for (std::size_t k = 0; k < active.size(); ++k) {
    at::Tensor const& q = factor_of(*active[k]);
    orthogonalize(q, epsilon);
    at::mm_out(ps[k], xs[k], q);
  }
  add_up(p_, ps);
  std::vector<at::Tensor> qs = views_of(q_, active, &LowRank::columns);
  for (std::size_t k = 0; k < active.size(); ++k) {
    orthogonalize(ps[k], epsilon);
    at::mm_out(qs[k], xs[k].t(), ps[k]);
  }
  add_up(q_, qs);
  for (std::size_t k = 0; k < active.size(); ++k) {
    qs[k].div_(all_.size());
    at::Tensor gradient = active[k]->gradient;
    at::mm_out(gradient, ps[k], qs[k].t());
    if (settings_.error_feedback) xs[k].sub_(gradient);
    gradient.mul_(weight);
    factor_of(*active[k]).copy_(qs[k]);
  }
}

FRUGAL_INLINE at::Tensor FactoredSum::x_of(Matrix const& matrix, bool has, double to_mean) {
  at::Tensor const& gradient = matrix.gradient;
  if (!settings_.error_feedback) return has ? gradient.mul_(to_mean) : gradient.zero_();
  at::Tensor& error = memory_.of(matrix.parameter).error;
  if (!error.defined()) error = at::zeros_like(matrix.place);
  at::Tensor x = as_matrix(error, matrix.shape);
  if (has) x.add_(gradient, to_mean);
  return x;
}

FRUGAL_INLINE void FactoredSum::draw_factors() {
  auto const lacks = [&](Matrix const& each) {
    at::Tensor const& q = factor_of(each);
    return !settings_.warm_start || !q.defined() || q.size(0) != each.shape.columns ||
           q.size(1) != each.shape.rank;
  };
  if (std::ranges::none_of(matrices_, lacks)) return;
  at::Generator const generator = at::make_generator<at::CPUGeneratorImpl>(memory_.next_seed());
  for (Matrix const& each : matrices_) {
    if (!lacks(each)) continue;
    factor_of(each) =
        at::randn({each.shape.columns, each.shape.rank}, generator, at::TensorOptions(at::kFloat))
            .to(each.gradient.device());
  }
}

FRUGAL_INLINE std::vector<at::Tensor> FactoredSum::views_of(
    at::Tensor const& flat, std::vector<Matrix const*> const& active,
    std::int64_t LowRank::* size) {
  std::vector<at::Tensor> views;
  std::int64_t at = 0;
  for (Matrix const* each : active) {
    std::int64_t const rows = each->shape.*size;
    std::int64_t const count = rows * each->shape.rank;
    views.push_back(flat.narrow(0, at, count).view({rows, each->shape.rank}));
    at += count;
  }
  return views;
}

FRUGAL_INLINE void FactoredSum::sort_as_torch() {
  std::ranges::reverse(matrices_);
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> first;
  for (std::size_t k = 0; k < matrices_.size(); ++k) {
    first.emplace(std::pair(matrices_[k].shape.rows, matrices_[k].shape.columns), k);
  }
  std::ranges::stable_sort(matrices_, {}, [&](Matrix const& each) {
    return first.at({each.shape.rows, each.shape.columns});
  });
}

FRUGAL_INLINE void PowerSGDGradients::after() {
  plain_.after();
  at::NoGradGuard const no_gradients;
  for (FactoredSum::Matrix const& each : factored_.matrices()) {
    at::Tensor const gradient = std::exchange(each.parameter.mutable_grad(), at::Tensor());
    if (!gradient.defined()) continue;
    require_dense(gradient);
    if (has_[each.index]) {
      each.place.add_(gradient);
    } else {
      each.place.copy_(gradient);
    }
    has_[each.index] = true;
  }
}

FRUGAL_INLINE at::Tensor PowerSGDGradients::exchange(at::Tensor const& message) {
  if (!compresses_) return plain_.exchange(message);
  at::Tensor const word = at::full({1}, std::bit_cast<std::int64_t>(factored_.largest(has_)),
                                   at::TensorOptions(at::kLong));
  at::Tensor const rows = plain_.exchange(at::cat({message, word}));
  largest_ = 0;
  for (std::int64_t rank = 0; rank < all_.size(); ++rank) {
    auto const each = std::bit_cast<double>(rows[rank][message.numel()].item<std::int64_t>());
    largest_ = std::isnan(each) ? each : std::max(largest_, each);
    if (std::isnan(largest_)) break;
  }
  return rows.narrow(1, 0, message.numel());
}

FRUGAL_INLINE std::vector<at::Tensor> PowerSGDGradients::sum(std::vector<bool> const& counts) {
  at::NoGradGuard const no_gradients;
  std::vector<at::Tensor> const sums = plain_.sum(counts);
  std::vector<at::Tensor> present;
  for (std::size_t k = 0; k < sums.size(); ++k) {
    places_[plain_indices_[k]] = sums[k];
    if (has_anywhere_[plain_indices_[k]]) present.push_back(sums[k]);
  }
  if (weight_ == 0 || (!compresses_ && owed_.empty())) return places_;
  if (first_non_finite(present) || !is_bounded()) {
    factored_.spoil();
    return places_;
  }
  return_errors();
  factored_.sum(has_, has_anywhere_, weight_);
  return places_;
}

FRUGAL_INLINE bool PowerSGDGradients::fits(std::vector<at::Tensor> const& parameters) const {
  if (parameters.size() != parameters_.size() || compresses_ != compresses_now_) return false;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!parameters[i].is_same(parameters_[i]) || parameters[i].scalar_type() != types_[i] ||
        parameters[i].device() != devices_[i])
      return false;
  }
  return true;
}

FRUGAL_INLINE void PowerSGDGradients::make(std::vector<at::Tensor> const& parameters) {
  parameters_ = parameters;
  compresses_ = compresses_now_;
  places_.assign(parameters_.size(), at::Tensor());
  types_.clear();
  devices_.clear();
  plain_parameters_.clear();
  plain_indices_.clear();
  std::vector<FactoredSum::Matrix> matrices;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    at::Tensor const& each = parameters_[i];
    types_.push_back(each.scalar_type());
    devices_.push_back(each.device());
    if (is_compressed(each)) {
      matrices.push_back(
          {.index = i, .parameter = each, .shape = LowRank::of(each, settings_.rank)});
    } else {
      plain_indices_.push_back(i);
      plain_parameters_.push_back(each);
    }
  }
  factored_.lay_out(std::move(matrices));
  std::vector<at::Tensor> like = parameters_;
  for (FactoredSum::Matrix const& each : factored_.matrices()) {
    like[each.index] = places_[each.index] = each.place;
  }
  memory_.place(parameters_, like);
  owed_ = plain_indices_;
  std::erase_if(owed_, [&](std::size_t i) { return !memory_.has_error(parameters_[i]); });
}

}  // namespace frugal::detail
